"""Where a channel may be: mount tables as Linux writes them, in the words of proc_pid_mountinfo(5)."""

from pathlib import Path

import psutil
import pytest

from channel.database import open_database
from channel.errors import UnsafePlace
from channel.mounts import Mount, mount_of, parse_mountinfo, system_mounts

TABLE = r"""
22 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw
23 22 0:40 / /home rw - nfs4 files.example:/home rw,vers=4.2
24 23 0:41 / /home/ann/local\040disk rw,relatime - xfs /dev/vdb rw
25 22 0:42 / /mnt/c rw,noatime - 9p drivers rw,aname=drvfs;path=C:\134
26 22 0:43 / /over rw - ext4 /dev/vdc rw
27 22 0:44 / /over rw - cifs //server/share rw
"""

SHARED = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "virtiofs",
    "drvfs",
    "vboxsf",
    "afpfs",
    "ceph",
    "fuse",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.grpcfuse",
    "macfuse",
]
LOCAL = ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "fuseblk", "fuse.gocryptfs", "fuse.fuse-overlayfs"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", "ext4"),
        ("/homestead", "ext4"),
        ("/home", "nfs4"),
        ("/home/ann", "nfs4"),
        ("/home/ann/local disk/deep", "xfs"),
        ("/mnt/c/Users", "9p"),
        ("/over/it", "cifs"),
    ],
)
def test_a_path_is_on_its_deepest_mount_and_on_the_newest_of_two_at_one_point(path: str, kind: str) -> None:
    mount = mount_of(Path(path), parse_mountinfo(TABLE))
    assert mount is not None
    assert mount.kind == kind


def test_the_systems_own_table_names_the_root_as_psutil_does(tmp_path: Path) -> None:
    kinds = {each.mountpoint: each.fstype for each in psutil.disk_partitions(all=True)}
    mount = mount_of(tmp_path.resolve(), system_mounts())
    assert mount is not None
    assert mount.kind == kinds[str(mount.point)]


@pytest.mark.fault("F40")
@pytest.mark.parametrize("kind", SHARED)
async def test_a_file_system_that_machines_share_is_refused_with_the_reason_before_anything_is_made(
    tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / "agent-channel"
    mounts = [Mount(Path("/"), "ext4"), Mount(tmp_path, kind)]
    with pytest.raises(UnsafePlace, match=rf"may share \({kind}\).*must be on one machine.*another file with --db"):
        async with open_database(folder / "channel.db", durable=False, mounts=lambda: mounts):
            pass
    assert not folder.exists()


@pytest.mark.fault("F40")
async def test_a_link_to_a_file_system_that_machines_share_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "home").symlink_to(shared)
    with pytest.raises(UnsafePlace, match="nfs4"):
        async with open_database(
            tmp_path / "home" / "channel.db", durable=False, mounts=lambda: [Mount(shared, "nfs4")]
        ):
            pass


@pytest.mark.fault("F40")
@pytest.mark.parametrize("kind", LOCAL)
async def test_a_local_file_system_is_used(tmp_path: Path, kind: str) -> None:
    async with open_database(tmp_path / "channel.db", durable=False, mounts=lambda: [Mount(Path("/"), kind)]):
        pass
