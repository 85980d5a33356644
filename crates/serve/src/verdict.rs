//! Is everything led and running? In a word, for those who look at another cluster meanwhile.
//!
//! It is what the page says of the cluster that it shows (`page/health.js`), by the same rules.

use incumbent::{DutyCondition, LeaseState, Member, MemberState};

use crate::snapshot::Snapshot;

const CLUSTER_LEASE: &str = "incumbent/leader";
const SLOT: &str = "incumbent/slot/";

/// How a cluster stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) level: Level,
    /// The same in words.
    pub(crate) says: String,
}

/// From the best to the worst, and that nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// There is nothing in it: perhaps its name is mistyped.
    Empty,
    Well,
    /// Duties are on their way.
    Busy,
    /// Somebody may want to look.
    Warning,
    /// Somebody should look.
    Bad,
    Unknown,
}

impl Level {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Well => "ok",
            Self::Busy => "busy",
            Self::Warning => "warn",
            Self::Bad => "bad",
            Self::Unknown => "unknown",
        }
    }
}

impl Verdict {
    /// It couldn't be read, for this reason.
    pub(crate) fn unknown(why: &str) -> Self {
        Self { level: Level::Unknown, says: format!("can't be read: {why}") }
    }

    /// How things stood when they were read.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut findings = Findings::default();
        snapshot.leases.iter().for_each(|lease| findings.lease(lease));
        findings.members(&snapshot.members);
        let moving = findings.duties(snapshot);
        let (level, said) = findings.worst();
        let duties = snapshot.work.duties.len();
        let says = match level {
            Level::Well if findings.leases == 0 && duties == 0 && snapshot.members.is_empty() => {
                let says = "nobody has joined it".to_owned();
                return Self { level: Level::Empty, says };
            }
            Level::Well | Level::Busy => {
                let moving = if moving > 0 { format!(", {moving} moving") } else { String::new() };
                format!(
                    "{} led, {} running{moving}",
                    counted(findings.leases, "lease", "leases"),
                    counted(findings.running, "duty", "duties")
                )
            }
            _ => said,
        };
        Self { level, says }
    }
}

/// What was found, each with how bad it is.
#[derive(Default)]
struct Findings {
    all: Vec<(Level, String)>,
    leases: usize,
    running: usize,
}

impl Findings {
    fn lease(&mut self, state: &LeaseState) {
        let name = &state.lease;
        match (&state.unreadable, &state.leader) {
            (Some(_), _) => self.add(Level::Bad, format!("who leads {name} isn't known")),
            (None, Some(leader)) if leader.state != MemberState::Alive || leader.is_overdue() => {
                self.add(Level::Bad, format!("nobody leads {name}"));
            }
            (None, Some(_)) => {}
            // A slot that nobody needs is free, and nothing is wrong with that.
            (None, None) if name.starts_with(SLOT) || state.term == 0 => return,
            (None, None) if name == CLUSTER_LEASE => {
                self.add(Level::Bad, format!("{name} is free"))
            }
            (None, None) => self.add(Level::Warning, format!("{name} is free")),
        }
        self.leases += 1;
    }

    fn members(&mut self, members: &[Member]) {
        let silent = |member: &&Member| member.is_overdue();
        let mut silent = members.iter().filter(silent);
        match (silent.next(), silent.count()) {
            (Some(member), 0) => self.add(Level::Warning, format!("{} is silent", member.node)),
            (Some(_), more) => self.add(Level::Warning, format!("{} nodes are silent", more + 1)),
            (None, _) => {}
        }
    }

    /// Says how many are on their way.
    fn duties(&mut self, snapshot: &Snapshot) -> usize {
        let (mut nowhere, mut failing, mut moving) = (0, 0, 0);
        for duty in &snapshot.work.duties {
            match duty.condition {
                DutyCondition::Active => self.running += 1,
                DutyCondition::Assigning | DutyCondition::Revoking => moving += 1,
                DutyCondition::Unassigned(_) => nowhere += 1,
                DutyCondition::Failing { .. } => failing += 1,
                _ => {}
            }
        }
        if nowhere > 0 {
            self.add(Level::Bad, counted(nowhere, "duty runs nowhere", "duties run nowhere"));
        }
        if failing > 0 {
            self.add(Level::Bad, counted(failing, "duty fails", "duties fail"));
        }
        if moving > 0 {
            self.add(Level::Busy, String::new());
        }
        moving
    }

    fn add(&mut self, level: Level, said: String) {
        self.all.push((level, said));
    }

    /// The worst that was found: the first two of it in words, and how many more there are.
    fn worst(&self) -> (Level, String) {
        let level = self.all.iter().map(|(level, _)| *level).max().unwrap_or(Level::Well);
        let said = self.all.iter().filter(|(one, _)| *one == level).map(|(_, said)| said.as_str());
        let said: Vec<&str> = said.collect();
        let mut says = said.iter().take(2).copied().collect::<Vec<_>>().join(", ");
        if said.len() > 2 {
            says.push_str(&format!(", and {} more", said.len() - 2));
        }
        (level, says)
    }
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use incumbent::{DutyId, DutyStanding, Workload};

    use super::*;

    fn verdict(conditions: &[DutyCondition], leases: &[(&str, u64)]) -> (&'static str, String) {
        let standing = |(number, condition): (usize, &DutyCondition)| DutyStanding {
            id: DutyId::new("work", &number.to_string()).unwrap(),
            condition: condition.clone(),
            node: None,
            member: None,
            address: None,
            term: 1,
            version: None,
            progress: None,
            weight: 1,
            pinned: None,
        };
        let free = |(name, term): &(&str, u64)| LeaseState {
            lease: (*name).to_owned(),
            term: *term,
            leader: None,
            changes: Vec::new(),
            unreadable: None,
        };
        let duties = conditions.iter().enumerate().map(standing).collect();
        let work = Workload { duties, ..Workload::default() };
        let leases = leases.iter().map(free).collect();
        let verdict = Verdict::of(&Snapshot::of(leases, Vec::new(), work, 0));
        (verdict.level.as_str(), verdict.says)
    }

    #[test]
    fn the_worst_is_said_and_all_of_its_kind() {
        let nowhere = || DutyCondition::Unassigned("full".to_owned());
        let failing = || DutyCondition::Failing { error: "x".to_owned(), times: 1, gave_up: false };
        let is = |level: &'static str, says: &str| (level, says.to_owned());
        let duties = [nowhere(), nowhere(), failing(), DutyCondition::Active];
        assert_eq!(verdict(&duties, &[]), is("bad", "2 duties run nowhere, 1 duty fails"));
        let leases = [("incumbent/leader", 3), ("a", 1)];
        let said = "incumbent/leader is free, 1 duty runs nowhere, and 1 more";
        assert_eq!(verdict(&[nowhere(), failing()], &leases), is("bad", said));
        let moving = [DutyCondition::Assigning, DutyCondition::Revoking, DutyCondition::Active];
        assert_eq!(verdict(&moving, &[]), is("busy", "0 leases led, 1 duty running, 2 moving"));
        assert_eq!(verdict(&[DutyCondition::Paused], &[("a", 1)]), is("warn", "a is free"));
        // What nobody ever held and a slot that nobody needs are no trouble.
        let calm = [("b", 0), ("incumbent/slot/importers/1", 4)];
        assert_eq!(verdict(&[], &calm), is("empty", "nobody has joined it"));
    }
}
