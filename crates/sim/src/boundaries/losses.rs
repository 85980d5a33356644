//! Reads that are stale, and stores that forget.

use incumbent_core::records::{Content, LeaseRecord, MemberRecord, MemberState};
use incumbent_core::store::{Lane, Write};
use incumbent_core::{ElectionEvent, LeaseName, Request, keys};
use incumbent_duties::DutyId;
use incumbent_duties::records::DutySpec;

use super::{lease, one_leader, violated};
use crate::duties::FAMILY;
use crate::invariants::Violation;
use crate::plant::Plant;
use crate::stage::{Pass, Stage, TTL, reads, writes};

/// O4: what the read shows was true once, and is over.
pub(super) fn read_from_the_past(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let former = stage.enter("a", false);
    stage.campaign(former, &lease());
    stage.play(3_000, |_, _| Pass::Through);
    let then = stage.now;
    stage.withdraw(former, &lease());
    stage.play(4_000, |_, _| Pass::Through);
    let holder = stage.enter("b", false);
    stage.campaign(holder, &lease());
    stage.play(6_000, |_, _| Pass::Through);
    stage.campaign(former, &lease());
    let look = |node, request: &Request| {
        let looks = node == former && reads(request, "lease/");
        if looks { Pass::Hold } else { Pass::Through }
    };
    stage.play(stage.now + 1, look);
    let Some((_, look)) = stage.sent.pop_front() else {
        return violated(&stage, "script", "the lease was not read".to_owned());
    };
    let reply = stage.apply_as_of(then, &look.exchange);
    stage.reply(former, look.id, Ok(reply));
    for _ in 0..1_000 {
        one_leader(&stage, &[former, holder])?;
        stage.play(stage.now + 1, |_, _| Pass::Through);
    }
    match stage.trusts(holder, &lease()) {
        Some(_) => Ok(()),
        None => violated(&stage, "script", "the holder lost the lease".to_owned()),
    }
}

/// One leads, the other waits.
pub(super) fn two(stage: &mut Stage) -> [usize; 2] {
    let holder = stage.enter("a", false);
    stage.campaign(holder, &lease());
    stage.play(2_000, |_, _| Pass::Through);
    let waiting = stage.enter("b", false);
    stage.campaign(waiting, &lease());
    stage.play(7_000, |_, _| Pass::Through);
    [holder, waiting]
}

/// O6: who waits has seen the term, and knows that it can't have vanished.
pub(super) fn forgotten(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let nodes = two(&mut stage);
    stage.forget(&[""]);
    for _ in 0..2 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        one_leader(&stage, &nodes)?;
    }
    let terms: Vec<u64> = nodes.iter().filter_map(|node| stage.trusts(*node, &lease())).collect();
    match terms.as_slice() {
        [] => violated(&stage, "liveness", "nobody leads after the loss".to_owned()),
        [term, ..] if *term > 1_000 => Ok(()),
        [term, ..] => violated(&stage, "terms", format!("term {term} may have been given before")),
    }
}

/// O6: who holds the lease can't know, and who waits has seen whom to wait for.
pub(super) fn lease_forgotten(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let nodes = two(&mut stage);
    let [holder, waiting] = nodes;
    stage.forget(&["lease/"]);
    for _ in 0..2 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        one_leader(&stage, &nodes)?;
    }
    // The holder ends, and the other goes on.
    stage.exit(holder);
    stage.play(stage.now + 2 * TTL, |_, _| Pass::Through);
    match stage.trusts(waiting, &lease()) {
        Some(term) if term > 1_000 => Ok(()),
        Some(term) => violated(&stage, "terms", format!("term {term} may have been given before")),
        None => violated(&stage, "liveness", "nobody leads after the holder's end".to_owned()),
    }
}

/// O6: a newcomer closes a holder whose member isn't there, because it can't know that it ever was.
pub(super) fn forgotten_twice(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let [holder, waiting] = two(&mut stage);
    stage.exit(holder);
    stage.forget(&[""]);
    while stage.sent.is_empty() && stage.now < 4 * TTL {
        stage.play(stage.now + 1, |node, request| {
            let takes = node == waiting && names_holder(request);
            if takes { Pass::Hold } else { Pass::Through }
        });
    }
    let Some((_, take)) = stage.sent.pop_front() else {
        return violated(&stage, "script", "the lease was not taken after the loss".to_owned());
    };
    stage.forget(&["member/"]);
    let reply = stage.apply(&take.exchange);
    stage.reply(waiting, take.id, Ok(reply));
    let newcomer = stage.enter("c", false);
    stage.campaign(newcomer, &lease());
    for _ in 0..2 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        one_leader(&stage, &[waiting, newcomer])?;
    }
    let elected =
        |(_, event): &(usize, ElectionEvent)| matches!(event, ElectionEvent::Elected { .. });
    if stage.events.iter().filter(|event| elected(event)).count() < 2 {
        return violated(&stage, "liveness", "nobody leads after the second loss".to_owned());
    }
    Ok(())
}

/// O6: the lease is there, and the member that holds it isn't any more.
pub(super) fn members_forgotten(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let nodes = two(&mut stage);
    let [holder, waiting] = nodes;
    stage.forget(&["member/"]);
    let before = stage.changes.len();
    for _ in 0..2 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        let closed = stage.changes.iter().skip(before).any(|change| {
            let record = change.after::<MemberRecord>();
            record.is_some_and(|record| record.state == MemberState::Expired)
        });
        if closed && stage.trusts(holder, &lease()).is_some() {
            return violated(&stage, "closing", "a member was closed that trusts".to_owned());
        }
        one_leader(&stage, &nodes)?;
    }
    let leads = |name: &LeaseName| nodes.iter().any(|node| stage.trusts(*node, name).is_some());
    if leads(&lease()) {
        return Ok(());
    }
    violated(&stage, "liveness", format!("node {waiting} waits for ever"))
}

/// O6: who saw the first term after a loss doesn't count on from it after the next, as another did.
pub(super) fn losses_unseen(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    stage.wall = 1_800_000_000_000;
    let [first, second] = two(&mut stage);
    stage.exit(first);
    stage.forget(&[""]);
    stage.play(stage.now + 3 * TTL, |_, _| Pass::Through);
    let third = stage.enter("c", false);
    stage.campaign(third, &lease());
    stage.play(stage.now + 5_000, |_, _| Pass::Through);
    let mut terms: Vec<u64> = stage.trusts(second, &lease()).into_iter().collect();
    // The second sees the next loss alone, and the third the one after that.
    stage.forget(&[""]);
    let apart = |node, _: &Request| if node == third { Pass::Drop } else { Pass::Through };
    stage.play(stage.now + TTL, apart);
    terms.iter().for_each(|term| stage.stopped(second, &lease(), *term));
    stage.play(stage.now + 2 * TTL, apart);
    terms.extend(stage.trusts(second, &lease()));
    stage.exit(second);
    stage.forget(&[""]);
    stage.play(stage.now + 3 * TTL, |_, _| Pass::Through);
    terms.extend(stage.trusts(third, &lease()));
    match terms.as_slice() {
        [one, two, three] if one < two && two < three => Ok(()),
        [_, _, _] => violated(&stage, "terms", format!("the terms were {terms:?}")),
        _ => violated(&stage, "liveness", format!("nobody led after a loss: {terms:?}")),
    }
}

/// O6: the former holder and the present one must not wait for each other.
pub(super) fn set_back(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let nodes = two(&mut stage);
    let [former, holder] = nodes;
    let then = stage.now;
    stage.withdraw(former, &lease());
    stage.play(stage.now + 1_000, |_, _| Pass::Through);
    stage.campaign(former, &lease());
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    if stage.trusts(holder, &lease()).is_none() {
        return violated(&stage, "script", "the lease was not taken over".to_owned());
    }
    stage.set_back(then, &["lease/"]);
    for _ in 0..2 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        one_leader(&stage, &nodes)?;
    }
    stage.withdraw(holder, &lease());
    stage.play(stage.now + 1, |_, _| Pass::Through);
    stage.campaign(holder, &lease());
    for _ in 0..4 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        one_leader(&stage, &nodes)?;
    }
    match nodes.iter().find_map(|node| stage.trusts(*node, &lease())) {
        Some(term) if term > 1_000 => Ok(()),
        Some(term) => violated(&stage, "terms", format!("term {term} may have been given before")),
        None => violated(&stage, "liveness", "they wait for each other".to_owned()),
    }
}

/// O6: who was seen to take the lease must have had a member record.
pub(super) fn first_holder(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let watching = stage.enter("a", false);
    stage.follow(watching, &lease());
    stage.play(2_000, |_, _| Pass::Through);
    let holder = stage.enter("b", false);
    stage.campaign(holder, &lease());
    let meets = |node, request: &Request| {
        let meets = node == watching && reads(request, "member/");
        if meets { Pass::Hold } else { Pass::Through }
    };
    while stage.sent.is_empty() && stage.now < TTL {
        stage.play(stage.now + 1, meets);
    }
    let Some((_, look)) = stage.sent.pop_front() else {
        return violated(&stage, "script", "the holder was not looked for".to_owned());
    };
    stage.forget(&["member/"]);
    let reply = stage.apply(&look.exchange);
    stage.campaign(watching, &lease());
    stage.reply(watching, look.id, Ok(reply));
    for _ in 0..2 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        one_leader(&stage, &[watching, holder])?;
    }
    let nodes = [watching, holder];
    if nodes.iter().any(|node| stage.trusts(*node, &lease()).is_some()) {
        return Ok(());
    }
    violated(&stage, "liveness", "nobody leads after the loss".to_owned())
}

/// O6: what the node before has seen is known to the next one of its process.
pub(super) fn forgotten_by_the_next(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let [holder, waiting] = two(&mut stage);
    let next = stage.enter_after(waiting, "c");
    stage.campaign(next, &lease());
    stage.forget(&[""]);
    let nodes = [holder, next];
    for _ in 0..3 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        one_leader(&stage, &nodes)?;
    }
    match nodes.iter().find_map(|node| stage.trusts(*node, &lease())) {
        Some(term) if term > 1_000 => Ok(()),
        Some(term) => violated(&stage, "terms", format!("term {term} may have been given before")),
        None => violated(&stage, "liveness", "nobody leads after the loss".to_owned()),
    }
}

/// O6: to the lease of a duty every other node is a newcomer, but for what its roster says.
pub(super) fn duty_forgotten(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let named = ["d1", "d2"];
    let specs = named.map(DutySpec::named);
    let duties: Vec<DutyId> =
        named.iter().filter_map(|name| DutyId::new(FAMILY, name).ok()).collect();
    stage.enter("a", true);
    let first = stage.enter("b", false);
    stage.serve(first, &[], &specs);
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    duties.iter().for_each(|duty| stage.started(first, duty));
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    stage.forget(&[keys::duty_leases().as_str()]);
    let second = stage.enter("c", false);
    stage.serve(second, &[], &specs);
    let trusts = |stage: &Stage, node, duty: &DutyId| stage.trusts(node, &duty.lease());
    for _ in 0..4 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        for duty in &duties {
            let terms = [first, second].map(|node| trusts(&stage, node, duty));
            if terms.iter().all(Option::is_some) {
                let story = format!("{duty} runs in terms {terms:?} at once");
                return violated(&stage, "one-leader", story);
            }
        }
    }
    // What moves ends where it was, and begins where it is to be.
    let ending = |duty: &&DutyId| {
        let held = stage.node(first).and_then(|node| node.held(&duty.lease()));
        held.is_none() && trusts(&stage, first, duty).is_some()
    };
    let Some(moved) = duties.iter().find(ending) else {
        return violated(&stage, "script", "nothing was to move".to_owned());
    };
    stage.stopped(first, &moved.lease(), 1);
    stage.play(stage.now + 4 * TTL, |_, _| Pass::Through);
    match trusts(&stage, second, moved) {
        Some(term) if term > 1_000 => Ok(()),
        Some(term) => violated(&stage, "terms", format!("term {term} may have been given before")),
        None => violated(&stage, "placed", format!("{moved} runs nowhere")),
    }
}

/// O44: a take that was on its way when a backup was restored lands in it, in the term that is lost.
pub(super) fn late_take(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let nodes = ["a", "b", "c"].map(|name| stage.enter(name, false));
    let [late, holder, waiting] = nodes;
    stage.campaign(holder, &lease());
    stage.play(3_000, |_, _| Pass::Through);
    stage.withdraw(holder, &lease());
    stage.play(4_000, |_, _| Pass::Through);
    let then = stage.now;
    stage.campaign(late, &lease());
    let takes = |node, request: &Request| node == late && names_holder(request);
    while stage.sent.is_empty() && stage.now < TTL {
        let judge = |node, request: &Request| match takes(node, request) {
            true => Pass::Doubt,
            false => Pass::Through,
        };
        stage.play(stage.now + 1, judge);
    }
    let Some((_, take)) = stage.sent.pop_front() else {
        return violated(&stage, "script", "the take was not sent".to_owned());
    };
    stage.campaign(holder, &lease());
    let cut = |node, request: &Request| match takes(node, request) {
        true => Pass::Drop,
        false => Pass::Through,
    };
    stage.play(stage.now + TTL, cut);
    stage.campaign(waiting, &lease());
    stage.play(stage.now + TTL, cut);
    if stage.trusts(holder, &lease()) != Some(2) {
        return violated(&stage, "script", "another doesn't lead in term 2".to_owned());
    }
    stage.set_back(then, &["lease/"]);
    // Some have seen that before the take lands, and could not write yet.
    let writes_lease = |_: usize, request: &Request| match writes(request, "lease/") {
        true => Pass::Drop,
        false => Pass::Through,
    };
    stage.play(stage.now + 1_500, writes_lease);
    stage.apply(&take.exchange);
    for _ in 0..4 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        one_leader(&stage, &nodes)?;
    }
    stage.withdraw(holder, &lease());
    for _ in 0..6 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        one_leader(&stage, &nodes)?;
    }
    match [late, waiting].iter().find_map(|node| stage.trusts(*node, &lease())) {
        Some(term) if term > 1_000 => Ok(()),
        Some(term) => violated(&stage, "terms", format!("term {term} may have been given before")),
        None => violated(&stage, "liveness", "they wait for one that is done".to_owned()),
    }
}

/// O44: who was evicted, and lives on because a backup was restored before it noticed.
pub(super) fn evicted_and_set_back(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let nodes = two(&mut stage);
    let [holder, waiting] = nodes;
    let member = stage.node(holder).and_then(|node| node.member().cloned());
    let key = member.map(|member| keys::member(&member));
    let stored = key.as_ref().and_then(|key| stage.store.record(key));
    let record = stored.and_then(|stored| MemberRecord::read(&stored).ok());
    let (Some(key), Some(record)) = (key, record) else {
        return violated(&stage, "script", "the holder is not there".to_owned());
    };
    let then = stage.now;
    stage.play(then + 1, |_, _| Pass::Through);
    let beats = |node, request: &Request| match request.lane {
        Lane::Beat if node == holder => Pass::Hold,
        Lane::Beat | Lane::Change | Lane::Watch => Pass::Through,
    };
    stage.operate(key, record.closed(MemberState::Evicted).bytes());
    // The one that waits looks once a second, and learns of it.
    stage.play(stage.now + 1_100, beats);
    stage.set_back(then, &["member/"]);
    // From then on it is told nothing, but may write.
    let deaf = |node, request: &Request| {
        let looks = node == waiting && reads(request, "lease/");
        if looks { Pass::Drop } else { Pass::Through }
    };
    let held: Vec<_> = stage.sent.drain(..).collect();
    for (node, beat) in held {
        let reply = stage.apply(&beat.exchange);
        stage.reply(node, beat.id, Ok(reply));
    }
    for _ in 0..2 * TTL {
        stage.play(stage.now + 1, deaf);
        one_leader(&stage, &nodes)?;
    }
    match stage.trusts(holder, &lease()) {
        Some(_) => Ok(()),
        None => violated(&stage, "script", "the holder didn't live on".to_owned()),
    }
}

/// Whether a request takes a lease: it writes one that somebody holds.
pub(super) fn names_holder(request: &Request) -> bool {
    request.exchange.writes.iter().any(|write| match write {
        Write::Put(put) if put.key.as_str().starts_with("lease/") => {
            serde_json::from_slice::<LeaseRecord>(&put.value).is_ok_and(|it| it.holder.is_some())
        }
        Write::Put(_) | Write::Delete(_) => false,
    })
}
