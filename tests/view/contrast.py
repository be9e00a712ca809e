"""How well texts stand out from what is behind them, as WCAG 2.2 (1.4.3) counts it."""

CONTRAST_MIN = 4.5
"""AA, for text of ordinary size."""

FAINT = """(least) => {
  const channels = (colour) => {
    const [red, green, blue, alpha = 1] = colour.match(/[\\d.]+/g).map(Number);
    return {rgb: [red, green, blue], alpha};
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const {rgb, alpha} = channels(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const luminance = (rgb) => {
    const [red, green, blue] = rgb.map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const faint = [];
  for (const element of document.body.querySelectorAll("*")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    if (!text || !element.checkVisibility() || element.closest("noscript")) continue;
    const style = getComputedStyle(element);
    const colour = channels(element.namespaceURI.endsWith("svg") ? style.fill : style.color).rgb;
    const [high, low] = [luminance(colour), luminance(ground(element))].sort((one, other) => other - one);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < least) faint.push(`${contrast.toFixed(2)} ${element.tagName} ${text.slice(0, 40)}`);
  }
  return faint;
}"""
"""In the page: the texts below a contrast, a line each."""
