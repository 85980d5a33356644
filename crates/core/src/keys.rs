//! Where each record lives below its cluster.
//!
//! Keys are ASCII letters, digits, `_`, `-`, `/` and `=`, which every store takes. Any other
//! byte of a name is written as `=` and two hexadecimal digits. A key past [`MAX_KEY`] bytes
//! keeps its beginning and ends in a hash; the record holds the full name.

use sha2::{Digest, Sha256};

use crate::names::{LeaseName, MemberId};
use crate::store::Key;

/// The longest key in bytes.
pub const MAX_KEY: usize = 200;

/// What names begin with that are kept for incumbent itself.
pub(crate) const RESERVED: &str = "incumbent/";

/// The lease whose holder leads the cluster.
pub(crate) const LEADER: &str = "incumbent/leader";

/// What the leases of slots begin with.
pub(crate) const SLOT: &str = "incumbent/slot/";

/// What the leases of duties begin with.
pub(crate) const DUTY: &str = "incumbent/duty/";

/// Where a member's record is.
#[must_use]
pub fn member(id: &MemberId) -> Key {
    Kind::Member.key(id.as_str())
}

/// Whose member record is there, if that is what it is.
pub(crate) fn member_in(key: &Key) -> Option<MemberId> {
    key.as_str().strip_prefix("member/").map(MemberId::new)
}

/// Where a member's profile is.
#[must_use]
pub fn profile(id: &MemberId) -> Key {
    Kind::Profile.key(id.as_str())
}

/// What the leader remembers about new versions.
#[must_use]
pub fn rollout() -> Key {
    Kind::Rollout.only()
}

/// What a member is wanted to run.
#[must_use]
pub fn roster(id: &MemberId) -> Key {
    Kind::Roster.key(id.as_str())
}

/// How a member gets on with it.
#[must_use]
pub fn report(id: &MemberId) -> Key {
    Kind::Report.key(id.as_str())
}

/// Where a list of known duties is.
#[must_use]
pub fn catalog(hash: &str) -> Key {
    Kind::Catalog.key(hash)
}

/// What the leader moved of late, and what it could not place.
#[must_use]
pub fn moves() -> Key {
    Kind::Moves.only()
}

/// Where a lease's record is.
#[must_use]
pub fn lease(name: &LeaseName) -> Key {
    Kind::Lease.key(name.as_str())
}

/// Where the last success of a job under a lease is.
#[must_use]
pub fn once(name: &LeaseName) -> Key {
    Kind::Once.key(name.as_str())
}

/// Where an operator's intent is.
#[must_use]
pub fn intent(id: &str) -> Key {
    Kind::Intent.key(id)
}

/// The members as the leader sees them.
#[must_use]
pub fn view() -> Key {
    Kind::View.only()
}

/// The index of what changed.
#[must_use]
pub fn board() -> Key {
    Kind::Board.only()
}

/// What operators did of late.
#[must_use]
pub fn audit() -> Key {
    Kind::Audit.only()
}

/// All members.
#[must_use]
pub fn members() -> Key {
    Kind::Member.all()
}

/// All profiles.
#[must_use]
pub fn profiles() -> Key {
    Kind::Profile.all()
}

/// All leases.
#[must_use]
pub fn leases() -> Key {
    Kind::Lease.all()
}

/// The leases of all duties.
#[must_use]
pub fn duty_leases() -> Key {
    Kind::Lease.key(DUTY)
}

/// The leases of the duties of a family. If its name is long they are among those of others, and
/// names have to be compared.
#[must_use]
pub fn family_leases(family: &str) -> Key {
    let key = Kind::Lease.key(&format!("{DUTY}{family}/"));
    // Of a key that is too long this much at least is kept.
    if key.as_str().len() <= MAX_KEY - 40 { key } else { duty_leases() }
}

/// All rosters.
#[must_use]
pub fn rosters() -> Key {
    Kind::Roster.all()
}

/// All reports.
#[must_use]
pub fn reports() -> Key {
    Kind::Report.all()
}

/// All catalogs.
#[must_use]
pub fn catalogs() -> Key {
    Kind::Catalog.all()
}

/// All intents.
#[must_use]
pub fn intents() -> Key {
    Kind::Intent.all()
}

/// Which kind of record a key is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// See [`member`].
    Member,
    /// See [`profile`].
    Profile,
    /// See [`catalog`].
    Catalog,
    /// See [`roster`].
    Roster,
    /// See [`report`].
    Report,
    /// See [`rollout`].
    Rollout,
    /// See [`moves`].
    Moves,
    /// See [`lease`].
    Lease,
    /// See [`once`].
    Once,
    /// See [`intent`].
    Intent,
    /// See [`view`].
    View,
    /// See [`board`].
    Board,
    /// See [`audit`].
    Audit,
}

impl Kind {
    const ALL: [Self; 13] = [
        Self::Member,
        Self::Profile,
        Self::Catalog,
        Self::Roster,
        Self::Report,
        Self::Rollout,
        Self::Moves,
        Self::Lease,
        Self::Once,
        Self::Intent,
        Self::View,
        Self::Board,
        Self::Audit,
    ];

    /// What the keys of this kind begin with.
    const fn start(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Profile => "profile",
            Self::Catalog => "catalog",
            Self::Roster => "roster",
            Self::Report => "report",
            Self::Rollout => "rollout",
            Self::Moves => "moves",
            Self::Lease => "lease",
            Self::Once => "once",
            Self::Intent => "intent",
            Self::View => "view",
            Self::Board => "board",
            Self::Audit => "audit",
        }
    }

    /// The kind of the record under a key; nothing for one that this version doesn't know.
    #[must_use]
    pub fn of(key: &Key) -> Option<Self> {
        let text = key.as_str();
        let start = text.split_once('/').map_or(text, |(kind, _)| kind);
        Self::ALL.into_iter().find(|kind| kind.start() == start)
    }

    fn only(self) -> Key {
        Key::new(self.start())
    }

    fn all(self) -> Key {
        Key::new(&format!("{}/", self.start()))
    }

    fn key(self, name: &str) -> Key {
        keyed(self.start(), name)
    }

    /// Whether this is the key of that name: every record that is read is asked so.
    pub(crate) fn is_key_of(self, key: &Key, name: &str) -> bool {
        let rest = key.as_str().strip_prefix(self.start());
        let same = rest.and_then(|rest| rest.strip_prefix('/')) == Some(name);
        if same && key.as_str().len() <= MAX_KEY && name.bytes().all(is_plain) {
            // As nearly all are.
            return true;
        }
        self.key(name) == *key
    }
}

/// The name that a key was made of: of a lease, a member's id and so on. Nothing if the key holds
/// only its beginning and a hash, or was made by nobody.
#[must_use]
pub fn name_in(key: &Key) -> Option<String> {
    let (_, escaped) = key.as_str().split_once('/')?;
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'=' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok().filter(|name| is_for(key, name))
}

/// Whether a key, of whichever kind, is that of this member; quicker than to make it, and wrong at
/// most about ids that nobody draws.
#[must_use]
pub fn is_of(key: &Key, id: &MemberId) -> bool {
    key.as_str().split_once('/').is_some_and(|(_, name)| name == id.as_str())
}

/// Whether a key, of whichever kind, was made of this name.
#[must_use]
pub fn is_for(key: &Key, name: &str) -> bool {
    let kind = key.as_str().split_once('/').map(|(kind, _)| kind);
    kind.is_some_and(|kind| keyed(kind, name) == *key)
}

/// Whether a byte of a name stands in a key as it is.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'/')
}

fn keyed(kind: &str, name: &str) -> Key {
    let mut text = String::with_capacity(kind.len() + name.len() + 1);
    text.push_str(kind);
    text.push('/');
    if name.bytes().all(is_plain) && text.len() + name.len() <= MAX_KEY {
        // As nearly all are.
        text.push_str(name);
        return Key::new(&text);
    }
    let mut end_of_start = 0;
    for byte in name.bytes() {
        if text.len() <= MAX_KEY - 34 {
            end_of_start = text.len();
        }
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("={byte:02X}"));
        }
    }
    if text.len() > MAX_KEY {
        text.truncate(end_of_start);
        // `h` is no hexadecimal digit, so that no escaped name ends like this.
        text.push_str("=h");
        for byte in Sha256::digest(name.as_bytes()).iter().take(16) {
            text.push_str(&format!("{byte:02x}"));
        }
    }
    Key::new(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_key(name: &str) -> String {
        lease(&LeaseName::new(name).unwrap()).as_str().to_owned()
    }

    #[test]
    fn plain_names_stay_readable() {
        assert_eq!(lease_key("shard-17"), "lease/shard-17");
        assert_eq!(lease_key("eu/west_1"), "lease/eu/west_1");
    }

    #[test]
    fn other_bytes_are_escaped_and_never_collide() {
        // F42: a comma in an id broke a whole batch elsewhere.
        assert_eq!(lease_key("a,b c"), "lease/a=2Cb=20c");
        assert_eq!(lease_key("a=2Cb"), "lease/a=3D2Cb");
        assert_eq!(lease_key("é"), "lease/=C3=A9");
        assert_ne!(lease_key("A"), lease_key("a"));
    }

    #[test]
    fn a_name_is_found_in_its_key_unless_it_is_hashed() {
        for name in ["scheduler", "eu/west_1", "a,b c", "a=2Cb", "é", "incumbent/leader"] {
            assert_eq!(name_in(&lease(&LeaseName::reserved(name))).as_deref(), Some(name));
        }
        assert_eq!(name_in(&lease(&LeaseName::new(&"x".repeat(1000)).unwrap())), None);
        for nobodys in ["board", "lease/a=2", "lease/a=zz", "lease/a b", "lease/=+1", "lease/=FF"] {
            assert_eq!(name_in(&Key::new(nobodys)), None, "{nobodys}");
        }
    }

    #[test]
    fn the_leases_of_a_family_begin_with_its_key() {
        for family in ["shard", "é, ☃", &"f".repeat(120), &"f".repeat(150), &"☃".repeat(900)] {
            for name in ["7", "a/b", &"x".repeat(1000), &"☃".repeat(300)] {
                let lease = lease(&LeaseName::duty(&format!("{family}/{name}")));
                assert!(lease.as_str().starts_with(family_leases(family).as_str()), "{lease}");
            }
        }
        assert_eq!(family_leases("shard").as_str(), "lease/incumbent/duty/shard/");
    }

    #[test]
    fn every_key_has_its_kind() {
        let id = MemberId::new("m");
        let lease_name = LeaseName::leader();
        let kinds = [
            (member(&id), Kind::Member),
            (profile(&id), Kind::Profile),
            (catalog("h"), Kind::Catalog),
            (roster(&id), Kind::Roster),
            (report(&id), Kind::Report),
            (rollout(), Kind::Rollout),
            (moves(), Kind::Moves),
            (lease(&lease_name), Kind::Lease),
            (once(&lease_name), Kind::Once),
            (intent("i"), Kind::Intent),
            (view(), Kind::View),
            (board(), Kind::Board),
            (audit(), Kind::Audit),
        ];
        for (key, kind) in kinds {
            assert_eq!(Kind::of(&key), Some(kind), "{key}");
        }
        assert_eq!(Kind::of(&Key::new("members/x")), None);
    }

    #[test]
    fn long_names_end_in_a_hash() {
        let one = "x".repeat(1000);
        let two = format!("{}y", "x".repeat(999));
        assert!(lease_key(&one).len() <= MAX_KEY);
        assert_ne!(lease_key(&one), lease_key(&two));
        let snow = "☃".repeat(300);
        assert!(lease_key(&snow).len() <= MAX_KEY);
        assert!(lease_key(&snow).is_ascii());
    }
}
