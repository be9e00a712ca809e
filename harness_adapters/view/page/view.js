// The page: one feed of one room, and the parts that show it.

import { drawHour } from "./chart.js";
import { Connection, takeToken } from "./connection.js";
import { Conversation } from "./conversation.js";
import { Decisions, Stuck } from "./decisions.js";
import { byId, setText } from "./elements.js";
import { Rooms } from "./rooms.js";

const NARROW = matchMedia("(max-width: 60rem)");

const WORDS = {
  connecting: "connecting",
  live: "live",
  lost: "not connected: trying again",
  refused: "not connected",
};

function start() {
  byId("hour").open = !NARROW.matches;
  const token = takeToken();
  if (token === null) {
    showState("refused", "The token is missing: open the address that `agent-channel view` printed.");
    return;
  }
  const connection = new Connection(token);
  const decisions = new Decisions(connection);
  const stuck = new Stuck(decisions);
  const conversation = new Conversation(connection, decisions);
  let following = new AbortController();

  const rooms = new Rooms((room) => follow(room));

  const shows = {
    rooms: (data) => {
      rooms.show(data);
      conversation.showPolicy(rooms.policyOf(conversation.room));
    },
    stuck: (data) => stuck.show(data),
    hour: drawHour,
    messages: (data) => {
      rooms.select(data.room);
      conversation.show(data);
      conversation.showPolicy(rooms.policyOf(data.room));
    },
    trouble: (data) => showTrouble(data.text),
  };

  function follow(room) {
    following.abort();
    following = new AbortController();
    const path = `/api/feed?${new URLSearchParams({ room })}`;
    history.replaceState(null, "", room ? `/?${new URLSearchParams({ room })}` : "/");
    connection.follow(path, following.signal, (name, data) => shows[name]?.(data), showState);
  }

  follow(new URLSearchParams(location.search).get("room") ?? "");
}

function showState(state, why = "") {
  byId("connection").dataset.is = state;
  setText(byId("connection"), WORDS[state]);
  if (why) showTrouble(why);
}

function showTrouble(text) {
  setText(byId("trouble"), text);
  byId("trouble").hidden = !text;
}

start();
