//! Plans that take their time or can't be made, and rosters that come late.

use incumbent_core::keys;
use incumbent_core::records::{Ask, Content, Intent};
use incumbent_core::store::Write;
use incumbent_core::{ElectionEvent, Request};
use incumbent_duties::records::DutySpec;
use incumbent_duties::{DutyEvent, DutyId};

use super::violated;
use crate::duties::FAMILY;
use crate::invariants::Violation;
use crate::plant::Plant;
use crate::stage::{Pass, Stage, TTL};

/// A duty is paused while the plan is made that starts it: nobody is asked to run it.
pub(super) fn plan_from_the_past(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let leader = stage.enter("a", true);
    stage.holds_plans = true;
    stage.serve(leader, &[], &[DutySpec::named("d1"), DutySpec::named("d2")]);
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    pause(&mut stage, "d1");
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    if !stage.make_plan(false) {
        return violated(&stage, "script", "no plan was to be made".to_owned());
    }
    let mut named = false;
    stage.play(stage.now + 1_000, |_, request| {
        named |= names(request, "work/d1");
        Pass::Through
    });
    if named {
        let story = "a plan of the past has a duty started that is paused".to_owned();
        return violated(&stage, "rosters", story);
    }
    Ok(())
}

/// There is news during each plan, without end: one in three is used all the same.
pub(super) fn news_without_end(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let leader = stage.enter("a", true);
    stage.holds_plans = true;
    let duties: Vec<DutySpec> = (1..9).map(|at| DutySpec::named(&format!("d{at}"))).collect();
    stage.serve(leader, &[], &duties);
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    let mut named = Vec::new();
    for at in 1..5 {
        pause(&mut stage, &format!("d{at}"));
        stage.play(stage.now + TTL, |_, _| Pass::Through);
        if !stage.make_plan(false) {
            return violated(&stage, "script", "no plan was to be made".to_owned());
        }
        stage.play(stage.now + 1_000, |_, request| {
            named.extend((1..9).filter(|at| names(request, &format!("work/d{at}"))));
            Pass::Through
        });
    }
    // The third plan knew of two pauses, and the third pause came before it was used.
    if named.iter().any(|duty| *duty < 4) || !named.contains(&8) {
        let story = format!("with news during each plan, rosters named {named:?}");
        return violated(&stage, "rosters", story);
    }
    Ok(())
}

/// The placement panics, again and again: it is said, tried less and less often, and beats go on.
pub(super) fn plan_that_fails(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let leader = stage.enter("a", true);
    stage.holds_plans = true;
    stage.serve(leader, &[], &[DutySpec::named("d1")]);
    let until = stage.now + 12 * TTL;
    while stage.now < until {
        stage.play(stage.now + 100, |_, _| Pass::Through);
        stage.make_plan(true);
    }
    let failed = |event: &&DutyEvent| matches!(event, DutyEvent::PlanningFailed { .. });
    let failures = stage.notices.iter().filter(failed).count();
    // 1, 2, 4, 8, 16, 32 and 60 seconds, in three minutes.
    if !(6..=9).contains(&failures) {
        return violated(&stage, "patience", format!("{failures} plans were tried"));
    }
    let ended = |(_, event): &(usize, ElectionEvent)| matches!(event, ElectionEvent::Ended { .. });
    if stage.events.iter().any(ended) {
        return violated(&stage, "liveness", "a plan that fails ended its node".to_owned());
    }
    stage.holds_plans = false;
    stage.play(stage.now + 62_000 + TTL, |_, _| Pass::Through);
    let runs = DutyId::new(FAMILY, "d1").ok();
    let runs = runs.and_then(|duty| stage.trusts(leader, &duty.lease()));
    if runs.is_none() {
        return violated(&stage, "placed", "no plan was made after those that failed".to_owned());
    }
    Ok(())
}

/// The first roster of a member is in doubt, and lands when it is to run nothing any more.
pub(super) fn roster_from_the_past(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let duties = [DutySpec { version: Some("2".to_owned()), ..DutySpec::named("d1") }];
    let leader = stage.enter("a", true);
    stage.serve(leader, &[], &duties);
    stage.play(7_000, |_, _| Pass::Through);
    // The only one that can run the duty joins, and can't run it any more when its roster lands.
    let member = stage.enter("b", false);
    stage.serve(member, &["2"], &duties);
    let doubt = |_, request: &Request| {
        let rosters = request.exchange.writes.iter().filter_map(|write| match write {
            Write::Put(put) if put.key.as_str().starts_with("roster/") => Some(&put.value),
            Write::Put(_) | Write::Delete(_) => None,
        });
        let named = |roster: &Vec<u8>| String::from_utf8_lossy(roster).contains("work/d1");
        if rosters.into_iter().any(named) { Pass::Doubt } else { Pass::Through }
    };
    stage.play(stage.now + TTL, doubt);
    let Some((_, roster)) = stage.sent.pop_front() else {
        return violated(&stage, "script", "the roster was not sent".to_owned());
    };
    stage.serve(member, &[], &duties);
    stage.play(stage.now + 2 * TTL, doubt);
    let before = stage.changes.len();
    stage.apply(&roster.exchange);
    if stage.changes.len() > before {
        let story = "a member got a roster with what it can't run, and nobody knows".to_owned();
        return violated(&stage, "rosters", story);
    }
    Ok(())
}

fn pause(stage: &mut Stage, duty: &str) {
    let ask = Ask::Pause { duty: format!("{FAMILY}/{duty}") };
    let intent = Intent::open(format!("pause-{duty}"), ask, "script".to_owned(), 0);
    stage.operate(keys::intent(&intent.id), intent.bytes());
}

/// Whether a request writes a roster that names this duty.
fn names(request: &Request, duty: &str) -> bool {
    request.exchange.writes.iter().any(|write| match write {
        Write::Put(put) => {
            let named = format!("\"{duty}\"");
            put.key.as_str().starts_with("roster/")
                && String::from_utf8_lossy(&put.value).contains(&named)
        }
        Write::Delete(_) => false,
    })
}
