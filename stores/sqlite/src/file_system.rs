//! What lies below the path: file systems on which processes may share less than it seems.

use std::path::Path;

/// The name of the network file system that this path is on, if it is on one.
///
/// SQLite can't tell: its log seems to work there until two machines use it.
pub(crate) fn network(path: &Path) -> Option<&'static str> {
    kind(path).and_then(known)
}

/// Whether what is written there is gone when the machine starts again.
pub(crate) fn is_memory(path: &Path) -> bool {
    kind(path).is_some_and(|kind| MEMORY.contains(&kind))
}

/// What whoever sets this up should know about where the file is.
pub(crate) fn warning(path: &Path) -> Option<String> {
    let path_shown = path.display();
    match kind(path)? {
        OVERLAY => Some(format!(
            "{path_shown} is on an overlay file system, as the root of a container is: other \
             containers have files of their own there, even if they were started from the same \
             image, and the file goes when the container does. Put it on a volume, and mount its \
             directory into every container."
        )),
        kind if MEMORY.contains(&kind) => Some(format!(
            "{path_shown} is on a file system in memory: it is gone when the machine starts again, \
             terms included, and containers and services often have one of their own, which others \
             don't see. Put it on a disk."
        )),
        FUSE => Some(format!(
            "{path_shown} is on a file system that a program provides (FUSE, virtiofs): whether \
             others share it, and with which locks, can't be seen from here. Let only processes \
             of this very machine use it, or put it on a local disk."
        )),
        _ => None,
    }
}

const OVERLAY: u32 = 0x794c_7630;
const FUSE: u32 = 0x6573_5546;
/// tmpfs and ramfs.
const MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// File systems that several machines share.
fn known(kind: u32) -> Option<&'static str> {
    const KNOWN: [(u32, &str); 14] = [
        (0x0000_6969, "NFS"),
        (0x0000_517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB"),
        (0x00c3_6400, "Ceph"),
        (0x5346_414f, "AFS"),
        (0x6b41_4653, "AFS"),
        (0x0bd0_0bd0, "Lustre"),
        (0x4750_4653, "GPFS"),
        (0x0102_1997, "9p"),
        (0x786f_4256, "a folder shared by VirtualBox"),
        (0x1983_0326, "BeeGFS"),
        (0x0116_1970, "GFS2"),
        (0x7461_636f, "OCFS2"),
    ];
    KNOWN.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

#[cfg(target_os = "linux")]
fn kind(path: &Path) -> Option<u32> {
    // Its width and sign differ from machine to machine; the number is of 32 bits.
    Some(rustix::fs::statfs(path).ok()?.f_type as u32)
}

#[cfg(not(target_os = "linux"))]
fn kind(_: &Path) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_machines_share_is_told_from_what_one_has() {
        assert_eq!(known(0x6969), Some("NFS"));
        assert_eq!(known(0x0102_1997), Some("9p"));
        for local in [0xef53, 0x0102_1994, 0x9123_683e, 0x5846_5342, OVERLAY, FUSE] {
            assert_eq!(known(local), None, "{local:x}");
        }
    }
}
