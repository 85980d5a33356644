//! Whether a file was mounted by itself, as `docker run -v app.db:/data/app.db` does.
//!
//! It is the same file under two names then, although it has one link: the log of each name is
//! another.

use std::path::Path;

/// Whether this file, named without any symbolic link, is a mount point.
#[cfg(target_os = "linux")]
pub(crate) fn is_mount_point(file: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    let told = statx(CWD, file, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty())
        .ok()
        .filter(|told| told.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT))
        .map(|told| told.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    // Kernels before 5.8, and those that only look like Linux, don't tell.
    told.unwrap_or_else(|| {
        std::fs::read("/proc/self/mountinfo").is_ok_and(|table| lists(&table, file))
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_mount_point(_: &Path) -> bool {
    false
}

/// Whether the kernel's table of mounts has this mount point.
#[cfg(target_os = "linux")]
fn lists(table: &[u8], file: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let wanted = file.as_os_str().as_bytes();
    let mut lines = table.split(|byte| *byte == b'\n');
    lines.any(|line| {
        let point = line.split(|byte| *byte == b' ').nth(4);
        point.is_some_and(|point| unescaped(point) == wanted)
    })
}

/// The kernel writes a space, a tab, a line feed and a backslash as three octal digits behind a
/// backslash.
#[cfg(target_os = "linux")]
fn unescaped(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    while let Some((first, rest)) = text.split_first() {
        let digits = rest.split_first_chunk::<3>().filter(|_| *first == b'\\');
        let decoded = digits.and_then(|(digits, rest)| {
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 8).ok()?, rest))
        });
        let (byte, left) = decoded.unwrap_or((*first, rest));
        bytes.push(byte);
        text = left;
    }
    bytes
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mounts_is_read_with_its_escapes() {
        let table = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
            90 22 8:1 /srv/app.db /data/app.db rw - ext4 /dev/sda1 rw\n\
            91 22 8:1 /x /da\\040ta/a\\134b\\011.db rw - ext4 /dev/sda1 rw\n\
            92 22\n\n";
        assert!(lists(table, Path::new("/data/app.db")));
        assert!(lists(table, Path::new("/da ta/a\\b\t.db")));
        for other in
            ["/srv/app.db", "/data", "/data/app.db-wal", "/da\\040ta/a\\134b\\011.db", "/x"]
        {
            assert!(!lists(table, Path::new(other)), "{other}");
        }
        assert_eq!(unescaped(b"a\\9zz\\04"), b"a\\9zz\\04");
    }

    #[test]
    fn a_plain_file_is_no_mount_point() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!is_mount_point(file.path()));
        assert!(is_mount_point(Path::new("/proc")));
        let table = std::fs::read("/proc/self/mountinfo").unwrap();
        assert!(lists(&table, Path::new("/proc")) && !lists(&table, file.path()));
    }
}
