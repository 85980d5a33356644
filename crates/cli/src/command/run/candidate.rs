//! Winning the lease, or one of its slots.

use std::time::Duration;

use incumbent::{Attempt, Campaign, Leadership, Node, Slot, SlotAttempt, Slots};

use super::RunArguments;
use super::notify::notify;
use crate::exit::{Code, Failure, Outcome};
use crate::out::plain;
use crate::session::Session;
use crate::when;

/// How long nothing is said about waiting: an orderly hand-over is quicker.
const SILENCE: Duration = Duration::from_millis(300);
/// How often is looked whether somebody else is waited for.
const LOOK: Duration = Duration::from_secs(5);

/// Who has it instead is worth so long.
const WORD: Duration = Duration::from_secs(1);

/// A lease that was won.
pub(crate) struct Won {
    /// Which lease.
    pub(crate) lease: String,
    /// Its slot, where there are several.
    pub(crate) slot: Option<u16>,
    /// The right itself.
    pub(crate) leadership: Leadership,
    /// Without it the right ends.
    pub(crate) campaign: Option<Campaign>,
}

impl Won {
    fn lease(leadership: Leadership, campaign: Option<Campaign>) -> Self {
        let lease = leadership.lease().as_str().to_owned();
        Self { lease, slot: None, leadership, campaign }
    }

    fn slot(slot: Slot) -> Self {
        let number = slot.index();
        Self { slot: Some(number), ..Self::lease(slot.into_leadership(), None) }
    }
}

/// Contends as the flags say; a failure says who has it instead.
pub(crate) async fn win(
    session: &Session,
    arguments: &RunArguments,
    node: &Node,
    patience: Option<Duration>,
) -> Outcome<Won> {
    if arguments.no_wait {
        return try_once(arguments, node).await;
    }
    let waiting = wait(session, arguments, node);
    let Some(patience) = patience else { return waiting.await };
    match tokio::time::timeout(patience, waiting).await {
        Ok(won) => won,
        Err(_) => {
            let who = tokio::time::timeout(WORD, holder(arguments, node)).await;
            let who = who.unwrap_or_else(|_| Some("the store does not answer".to_owned()));
            let who = who.unwrap_or_else(|| "nobody provided it in time".to_owned());
            Err(Failure::late(format!("{} could not be acquired: {who}", arguments.lease)))
        }
    }
}

async fn try_once(arguments: &RunArguments, node: &Node) -> Outcome<Won> {
    if let Some(count) = arguments.slots {
        let slots = slots(arguments, node, count)?;
        return match slots.try_acquire().await.map_err(Failure::usage)? {
            SlotAttempt::Acquired(slot) => Ok(Won::slot(slot)),
            SlotAttempt::Unavailable { why } => Err(Failure::new(Code::Unreachable, why)),
            _ => Err(Failure::late(taken(count))),
        };
    }
    let lease = &arguments.lease;
    match node.try_lead(lease.as_str()).await.map_err(Failure::usage)? {
        Attempt::Elected(leadership) => Ok(Won::lease(leadership, None)),
        Attempt::OtherLeader(other) => {
            let since = other.since_ms.map(|at| format!(", for {}", when::passed(at)));
            Err(Failure::late(format!(
                "{} has {lease} (term {}{})",
                plain(&other.node),
                other.term,
                since.unwrap_or_default()
            )))
        }
        Attempt::Unavailable { why } => Err(Failure::new(Code::Unreachable, why)),
        _ => Err(Failure::late(format!("{lease} is changing hands: try again"))),
    }
}

async fn wait(session: &Session, arguments: &RunArguments, node: &Node) -> Outcome<Won> {
    let telling = tell(session, arguments, node);
    tokio::select! {
        biased;
        won = elected(arguments, node) => won,
        () = telling => Err(Failure::internal("waiting ended")),
    }
}

async fn elected(arguments: &RunArguments, node: &Node) -> Outcome<Won> {
    if let Some(count) = arguments.slots {
        let slot = slots(arguments, node, count)?.acquire().await;
        return slot.map(Won::slot).map_err(Failure::internal);
    }
    let mut campaign = node.campaign(arguments.lease.as_str()).map_err(Failure::usage)?;
    let leadership = campaign.elected().await.map_err(Failure::internal)?;
    Ok(Won::lease(leadership, Some(campaign)))
}

fn slots(arguments: &RunArguments, node: &Node, count: u16) -> Outcome<Slots> {
    node.slots(&arguments.lease, count).map_err(Failure::usage)
}

fn taken(count: u16) -> String {
    format!("all {count} slots are taken")
}

/// Says whom it waits for, and again whenever that changes.
async fn tell(session: &Session, arguments: &RunArguments, node: &Node) {
    let mut pause = SILENCE;
    let mut said = None;
    loop {
        tokio::time::sleep(pause).await;
        pause = LOOK;
        let who = holder(arguments, node).await;
        if who != said {
            let remark = who.as_deref().unwrap_or("nobody has it");
            session.remark(format!("waiting for {}: {remark}", arguments.lease));
            notify(&format!("STATUS=waiting for {}: {remark}", arguments.lease));
            said = who;
        }
    }
}

/// Who has what is wanted, as far as the store says.
async fn holder(arguments: &RunArguments, node: &Node) -> Option<String> {
    if let Some(count) = arguments.slots {
        return Some(taken(count));
    }
    match node.leader(&arguments.lease).await {
        Ok(Some(leader)) => Some(format!("{} has it in term {}", plain(&leader.node), leader.term)),
        Ok(None) => None,
        Err(error) => Some(error.to_string()),
    }
}
