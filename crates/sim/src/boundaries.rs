//! Runs that are played by a script, where chance would hardly ever go: a reply at the very end
//! of trust, a write that lands after everything it knew is gone.

mod deploys;
mod losses;
mod plans;
mod refusals;
mod relapses;
mod sizes;
mod steering;
mod views;

use incumbent_core::records::{MemberRecord, MemberState};
use incumbent_core::store::Lane;
use incumbent_core::{ElectionEvent, LeaseName, Request};

use crate::invariants::Violation;
use crate::plant::Plant;
use crate::stage::{Pass, Stage, TTL, reads, writes};
use crate::store::Applied;

/// A scripted run.
#[derive(Clone, Copy)]
pub struct Boundary {
    /// Its name.
    pub name: &'static str,
    /// What it plays.
    pub story: &'static str,
    play: fn(Plant) -> Result<(), Violation>,
}

impl Boundary {
    /// Every scripted run.
    pub const ALL: &[Self] = &[
        Self {
            name: "take-at-the-end",
            story: "a take succeeds, and its reply comes a moment after trust has ended",
            play: take_at_the_end,
        },
        Self {
            name: "beat-from-the-past",
            story: "a beat lands after its member was expired, deleted and created as expired",
            play: beat_from_the_past,
        },
        Self {
            name: "birth-from-the-past",
            story: "a creation in doubt lands after its member lived, expired and was deleted",
            play: birth_from_the_past,
        },
        Self {
            name: "late-read",
            story: "a read is slow, a beat lands before it is answered, then the holder is cut off",
            play: late_read,
        },
        Self {
            name: "take-nobody-wants",
            story: "a take in doubt lands after its node gave up wanting the lease",
            play: take_nobody_wants,
        },
        Self {
            name: "roster-from-the-past",
            story: "the first roster of a member, in doubt, lands when it is to run nothing any more",
            play: plans::roster_from_the_past,
        },
        Self {
            name: "plan-from-the-past",
            story: "a duty is paused while the plan is made that starts it",
            play: plans::plan_from_the_past,
        },
        Self {
            name: "news-without-end",
            story: "there is news during every plan",
            play: plans::news_without_end,
        },
        Self {
            name: "plan-that-fails",
            story: "the placement panics again and again, and then not any more",
            play: plans::plan_that_fails,
        },
        Self {
            name: "hint-between-reads",
            story: "a second lease is freed, with a hint, while the read after the first hint is on its way",
            play: hint_between_reads,
        },
        Self {
            name: "refused-while-stale",
            story: "the holder is known to be dead, and reads don't show its last beat",
            play: refusals::refused_while_stale,
        },
        Self {
            name: "read-from-the-past",
            story: "a node wants a lease again that it freed, and a stale read still names it",
            play: losses::read_from_the_past,
        },
        Self {
            name: "forgotten",
            story: "the store forgets everything while one leads and another waits",
            play: losses::forgotten,
        },
        Self {
            name: "lease-forgotten",
            story: "the store forgets a lease, and not the member that holds it and leads on",
            play: losses::lease_forgotten,
        },
        Self {
            name: "forgotten-twice",
            story: "the store forgets its members before the take arrives that followed a first loss",
            play: losses::forgotten_twice,
        },
        Self {
            name: "members-forgotten",
            story: "the store forgets who holds the lease that another waits for",
            play: losses::members_forgotten,
        },
        Self {
            name: "losses-unseen",
            story: "the store forgets again and again, and one node misses what was in between",
            play: losses::losses_unseen,
        },
        Self {
            name: "set-back",
            story: "a lease goes back to a former holder, while the present one leads on",
            play: losses::set_back,
        },
        Self {
            name: "first-holder",
            story: "a lease is taken for the first time, and the store forgets its holder's member",
            play: losses::first_holder,
        },
        Self {
            name: "forgotten-by-the-next",
            story: "a process joins anew, and then the store forgets who leads",
            play: losses::forgotten_by_the_next,
        },
        Self {
            name: "duty-forgotten",
            story: "the store forgets the leases of duties alone, and one of these moves",
            play: losses::duty_forgotten,
        },
        Self {
            name: "asked-in-vain",
            story: "a duty that runs nowhere is to go where it can't run",
            play: steering::asked_in_vain,
        },
        Self {
            name: "asked-and-forgotten",
            story: "a duty is to go where it can't run, its node is drained and its lease forgotten",
            play: steering::asked_and_forgotten,
        },
        Self {
            name: "late-take",
            story: "a backup of the leases is restored, and a take lands in it that was on its way",
            play: losses::late_take,
        },
        Self {
            name: "taken-between-losses",
            story: "a lease is lost, taken and lost again, and one that waits for it misses the middle",
            play: relapses::taken_between_losses,
        },
        Self {
            name: "back-to-the-wait",
            story: "a lost lease is taken, and a backup restored that others waited on",
            play: relapses::back_to_the_wait,
        },
        Self {
            name: "taken-in-a-backup",
            story: "a backup is restored that others waited on, and one of them takes the lease in it",
            play: relapses::taken_in_a_backup,
        },
        Self {
            name: "freed-in-a-backup",
            story: "a lease is taken in a restored backup, and freed before that is noticed",
            play: relapses::freed_in_a_backup,
        },
        Self {
            name: "evicted-and-set-back",
            story: "a holder is evicted, and a backup restored before it has noticed",
            play: losses::evicted_and_set_back,
        },
        Self {
            name: "move-half-written",
            story: "a duty moves between nodes of the old version, and its new roster is lost",
            play: deploys::move_half_written,
        },
        Self {
            name: "old-leases",
            story: "6,000 duties have been, a record takes a millisecond, and a leader is elected",
            play: sizes::old_leases,
        },
        Self {
            name: "small-values",
            story: "there are more duties and labels than the store's records can hold",
            play: sizes::small_values,
        },
        Self {
            name: "view-in-doubt",
            story: "a view is written, and its writer never hears of it",
            play: views::view_in_doubt,
        },
    ];

    /// Plays it, with a mistake planted if one is named.
    ///
    /// # Errors
    /// If an invariant was violated.
    pub fn play(&self, plant: Plant) -> Result<(), Violation> {
        (self.play)(plant)
    }
}

fn lease() -> LeaseName {
    LeaseName::new("lease-1").unwrap_or_else(|_| LeaseName::leader())
}

fn violated(stage: &Stage, invariant: &'static str, story: String) -> Result<(), Violation> {
    Err(Violation { invariant, instant: stage.now * 1_000_000, story })
}

fn one_leader(stage: &Stage, nodes: &[usize]) -> Result<(), Violation> {
    let leaders: Vec<u64> = nodes.iter().filter_map(|node| stage.trusts(*node, &lease())).collect();
    if leaders.len() > 1 {
        return violated(stage, "one-leader", format!("terms {leaders:?} are trusted at once"));
    }
    Ok(())
}

fn take_at_the_end(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let node = stage.enter("a", false);
    // Only its creation gets through, so trust ends 13.5 s after that was sent.
    stage.play(1_010, |_, _| Pass::Through);
    let end = stage.node(node).map_or(0, |node| node.trusted_until().as_nanos() / 1_000_000);
    stage.play(end - 200, |_, request| beatless(request));
    stage.campaign(node, &lease());
    let judge = |_, request: &Request| {
        if writes(request, "lease/") { Pass::Hold } else { beatless(request) }
    };
    stage.play(end - 100, judge);
    let Some(at) = stage.sent.iter().position(|(_, request)| writes(request, "lease/")) else {
        return violated(&stage, "script", "the take was not sent".to_owned());
    };
    let Some((_, take)) = stage.sent.remove(at) else { return Ok(()) };
    let reply = stage.apply(&take.exchange);
    // The process is not scheduled between the end of trust and the reply.
    stage.now = end + 1;
    stage.reply(node, take.id, Ok(reply));
    let elected =
        |(_, event): &(usize, ElectionEvent)| matches!(event, ElectionEvent::Elected { .. });
    if stage.events.iter().any(elected) {
        return violated(&stage, "events", "elected after trust had ended".to_owned());
    }
    Ok(())
}

/// Everything but beats gets through.
fn beatless(request: &Request) -> Pass {
    if request.lane == Lane::Beat { Pass::Drop } else { Pass::Through }
}

fn beat_from_the_past(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let holder = stage.enter("a", false);
    stage.campaign(holder, &lease());
    // It joins and takes the lease; its first beat is held on the way.
    stage.play(7_000, |_, request| match request.lane {
        Lane::Beat if !request.exchange.reads.is_empty() => Pass::Hold,
        Lane::Beat | Lane::Change | Lane::Watch => Pass::Through,
    });
    let Some((_, beat)) = stage.sent.pop_front() else {
        return violated(&stage, "script", "the beat was not sent".to_owned());
    };
    stage.exit(holder);
    // A leader that doesn't want the lease closes the member and deletes it in the end.
    stage.enter("b", true);
    stage.play(stage.now + 4 * TTL, |_, _| Pass::Through);
    // A candidate finds the lease in the hands of nobody, and creates that member as expired.
    let candidate = stage.enter("c", false);
    stage.campaign(candidate, &lease());
    stage.play(stage.now + 5, |_, _| Pass::Through);
    let before = stage.changes.len();
    stage.apply(&beat.exchange);
    if stage.changes.len() > before {
        return violated(&stage, "closing", "an expired member came back to life".to_owned());
    }
    Ok(())
}

fn birth_from_the_past(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let first = stage.enter("a", false);
    stage.campaign(first, &lease());
    // The first creation is in doubt and lands much later.
    let mut born = false;
    stage.play(3_000, |_, request| {
        if !born && request.lane == Lane::Beat {
            born = true;
            return Pass::Doubt;
        }
        Pass::Through
    });
    let Some((_, birth)) = stage.sent.pop_front() else {
        return violated(&stage, "script", "no creation was in doubt".to_owned());
    };
    // Then it can't reach the store, and another takes over.
    let second = stage.enter("b", true);
    stage.campaign(second, &lease());
    let cut = |node, _: &Request| if node == first { Pass::Drop } else { Pass::Through };
    stage.play(stage.now + 5 * TTL, cut);
    stage.apply(&birth.exchange);
    for _ in 0..TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        one_leader(&stage, &[first, second])?;
    }
    Ok(())
}

fn late_read(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let holder = stage.enter("a", false);
    stage.campaign(holder, &lease());
    stage.play(4_000, |_, _| Pass::Through);
    let watcher = stage.enter("b", false);
    stage.campaign(watcher, &lease());
    stage.play(7_000, |_, _| Pass::Through);
    // A read hangs for three seconds; the holder's beat lands, and then the read is answered.
    let mut beaten = false;
    for _ in 0..5_000 {
        stage.play(stage.now + 1, |node, request| {
            beaten |= node == holder && writes(request, "member/");
            if node == watcher && request.lane == Lane::Watch { Pass::Hold } else { Pass::Through }
        });
        if beaten {
            break;
        }
    }
    while let Some((node, read)) = stage.sent.pop_front() {
        let reply = stage.apply(&read.exchange);
        stage.reply(node, read.id, Ok(reply));
    }
    // From here on the holder is cut off, and trusts its last beat.
    let cut = |node, _: &Request| if node == holder { Pass::Drop } else { Pass::Through };
    for _ in 0..TTL + 2_000 {
        stage.play(stage.now + 1, cut);
        one_leader(&stage, &[holder, watcher])?;
    }
    let taken = stage.trusts(watcher, &lease()).is_some();
    let closed = |change: &Applied| {
        let record = change.after::<MemberRecord>();
        record.is_some_and(|record| record.state == MemberState::Expired)
    };
    let expired = stage.changes.iter().any(closed);
    if taken && expired {
        return Ok(());
    }
    violated(&stage, "liveness", "nobody took over from the one cut off".to_owned())
}

fn take_nobody_wants(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    // The lease was held and freed before, so that there is a record to expect.
    let other = stage.enter("b", false);
    stage.campaign(other, &lease());
    stage.play(3_000, |_, _| Pass::Through);
    stage.withdraw(other, &lease());
    stage.play(4_000, |_, _| Pass::Through);
    let node = stage.enter("a", false);
    stage.campaign(node, &lease());
    stage.play(4_100, |_, request| match request.lane {
        Lane::Change if writes(request, "lease/") => Pass::Doubt,
        Lane::Beat | Lane::Change | Lane::Watch => Pass::Through,
    });
    let Some((_, take)) = stage.sent.pop_front() else {
        return violated(&stage, "script", "the take was not sent".to_owned());
    };
    stage.withdraw(node, &lease());
    stage.play(8_000, |_, _| Pass::Through);
    stage.apply(&take.exchange);
    stage.campaign(other, &lease());
    stage.play(stage.now + 2 * TTL, |_, _| Pass::Through);
    match stage.trusts(other, &lease()) {
        Some(_) => Ok(()),
        None => {
            violated(&stage, "liveness", "the lease is held by one that doesn't want it".to_owned())
        }
    }
}

/// O18: the reply to the read that was on its way shows the first lease free and the second held.
fn hint_between_reads(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let second = LeaseName::new("lease-2").unwrap_or_else(|_| LeaseName::leader());
    let holder = stage.enter("a", false);
    stage.campaign(holder, &lease());
    stage.campaign(holder, &second);
    stage.play(2_000, |_, _| Pass::Through);
    let waiting = stage.enter("b", false);
    stage.campaign(waiting, &lease());
    stage.campaign(waiting, &second);
    stage.play(3_000, |_, _| Pass::Through);
    let hold = |node, request: &Request| {
        if node == waiting && request.lane == Lane::Watch { Pass::Hold } else { Pass::Through }
    };
    stage.withdraw(holder, &lease());
    stage.play(stage.now + 1, |_, _| Pass::Through);
    stage.hint(waiting);
    stage.play(stage.now + 1, hold);
    let look = stage.sent.iter().position(|(_, request)| reads(request, "lease/lease-2"));
    let Some((_, look)) = look.and_then(|at| stage.sent.remove(at)) else {
        return violated(&stage, "script", "nothing was read after the hint".to_owned());
    };
    let reply = stage.apply(&look.exchange);
    stage.withdraw(holder, &second);
    stage.play(stage.now + 1, hold);
    stage.hint(waiting);
    stage.play(stage.now + 1, hold);
    stage.reply(waiting, look.id, Ok(reply));
    stage.play(stage.now + 20, |_, _| Pass::Through);
    match stage.trusts(waiting, &second) {
        Some(_) => Ok(()),
        None => violated(&stage, "hand-over", "the second lease was left free".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_holds_without_a_mistake() {
        for boundary in Boundary::ALL {
            assert_eq!(boundary.play(Plant::Nothing), Ok(()), "{}", boundary.name);
        }
    }

    #[test]
    fn the_rare_mistakes_are_caught() {
        use crate::store::Flaw;
        use incumbent_core::mutant::Mutant;
        let catches = |name: &str, plant: Plant| {
            let boundary = Boundary::ALL.iter().find(|boundary| boundary.name == name).unwrap();
            let violation = boundary.play(plant).expect_err(name);
            assert_eq!(violation.invariant, plant.caught_by(), "{name}: {}", violation.story);
        };
        catches("take-at-the-end", Plant::Core(Mutant::TakeWithoutTrustCheck));
        catches("beat-from-the-past", Plant::Store(Flaw::VersionsRestart));
        catches("birth-from-the-past", Plant::Core(Mutant::CreateRetriedAndBeatsOn));
        catches("take-nobody-wants", Plant::Core(Mutant::DoubtfulTakeForgotten));
        catches("late-read", Plant::Core(Mutant::WatchFromSend));
        catches("read-from-the-past", Plant::Core(Mutant::AnyReadElects));
        catches("lease-forgotten", Plant::Core(Mutant::ForgottenTakenAtOnce));
        catches("forgotten", Plant::Core(Mutant::ForgottenTermRestarts));
        catches("forgotten-twice", Plant::Core(Mutant::ForgottenElectedWithoutBeat));
        catches("members-forgotten", Plant::Core(Mutant::VanishedClosedAtOnce));
        catches("losses-unseen", Plant::Core(Mutant::LossesCounted));
        catches("set-back", Plant::Core(Mutant::FormerNameStays));
        catches("first-holder", Plant::Core(Mutant::NewHolderUnexpected));
        catches("forgotten-by-the-next", Plant::Core(Mutant::PastForgotten));
        catches("duty-forgotten", Plant::Core(Mutant::FormerForgotten));
        catches("asked-and-forgotten", Plant::Core(Mutant::AskedIsThere));
        catches("taken-between-losses", Plant::Core(Mutant::LossesMixedUp));
        catches("back-to-the-wait", Plant::Core(Mutant::WaitOutlivesMember));
        catches("taken-in-a-backup", Plant::Core(Mutant::AnySightProves));
        catches("freed-in-a-backup", Plant::Core(Mutant::FreedWithoutProof));
        catches("hint-between-reads", Plant::Core(Mutant::HintLostWhileLooking));
        catches("late-take", Plant::Core(Mutant::LeasesNotReadAgain));
        catches("refused-while-stale", Plant::Core(Mutant::RefusedReadAtOnce));
        catches("roster-from-the-past", Plant::Core(Mutant::NoEmptyRosters));
        catches("plan-from-the-past", Plant::Core(Mutant::StalePlanApplied));
        catches("small-values", Plant::Core(Mutant::RecordsUnbounded));
        catches("old-leases", Plant::Core(Mutant::OldLeasesListed));
        catches("view-in-doubt", Plant::Core(Mutant::ViewInDoubtForgotten));
    }
}
