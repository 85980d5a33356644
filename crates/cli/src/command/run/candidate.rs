//! Winning the lease, or one of its slots.

use std::time::Duration;

use incumbent::{Attempt, Campaign, Leadership, Node};

use super::RunArguments;
use super::notify::notify;
use crate::exit::{Failure, Outcome};
use crate::out::plain;
use crate::session::Session;
use crate::when;

/// How long nothing is said about waiting: an orderly hand-over is quicker.
const SILENCE: Duration = Duration::from_millis(300);
/// How often is looked whether somebody else is waited for.
const LOOK: Duration = Duration::from_secs(5);

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

/// The leases that will do, with their slots.
fn leases(arguments: &RunArguments) -> Vec<(String, Option<u16>)> {
    match arguments.slots {
        None => vec![(arguments.lease.clone(), None)],
        Some(slots) => {
            (0..slots).map(|slot| (format!("{}#{slot}", arguments.lease), Some(slot))).collect()
        }
    }
}

/// Contends as the flags say; a failure says who has it instead.
pub(crate) async fn win(session: &Session, arguments: &RunArguments, node: &Node) -> Outcome<Won> {
    let leases = leases(arguments);
    if arguments.no_wait || leases.len() > 1 {
        // One after the other, so that nobody takes several slots and gives them back.
        let refused = match try_each(node, &leases).await? {
            Ok(won) => return Ok(won),
            Err(refused) => refused,
        };
        if arguments.no_wait {
            return Err(refused);
        }
    }
    let waiting = wait(session, arguments, node, &leases);
    let Some(patience) = arguments.wait else { return waiting.await };
    match tokio::time::timeout(patience, waiting).await {
        Ok(won) => won,
        Err(_) => {
            let who = holder(node, &leases).await;
            let who = who.unwrap_or_else(|| "nobody gave it in time".to_owned());
            Err(Failure::late(format!("{} was not to be had: {who}", arguments.lease)))
        }
    }
}

async fn try_each(node: &Node, leases: &[(String, Option<u16>)]) -> Outcome<Result<Won, Failure>> {
    let mut refused = Failure::late("");
    for (lease, slot) in leases {
        let attempt = node.try_lead(lease.as_str()).await.map_err(Failure::usage)?;
        refused = match attempt {
            Attempt::Elected(leadership) => {
                let (lease, slot, campaign) = (lease.clone(), *slot, None);
                return Ok(Ok(Won { lease, slot, leadership, campaign }));
            }
            Attempt::OtherLeader(other) => {
                let since = other.since_ms.map(|at| format!(", for {}", when::passed(at)));
                Failure::late(format!(
                    "{} has {lease} (term {}{})",
                    plain(&other.node),
                    other.term,
                    since.unwrap_or_default()
                ))
            }
            Attempt::Conflict | Attempt::AlreadyLeader { .. } => {
                Failure::late(format!("{lease} is changing hands: try again"))
            }
            Attempt::Unavailable { why } => Failure::new(crate::exit::Code::Unreachable, why),
        };
    }
    if leases.len() > 1 && refused.code == crate::exit::Code::Late {
        refused =
            Failure::late(format!("all {} slots are taken: {}", leases.len(), refused.message));
    }
    Ok(Err(refused))
}

async fn wait(
    session: &Session,
    arguments: &RunArguments,
    node: &Node,
    leases: &[(String, Option<u16>)],
) -> Outcome<Won> {
    let mut campaigns = Vec::new();
    for (lease, slot) in leases {
        let campaign = node.campaign(lease.as_str()).map_err(Failure::usage)?;
        campaigns.push((campaign, *slot));
    }
    let telling = tell(session, arguments, node, leases);
    tokio::select! {
        biased;
        won = first(campaigns) => won,
        () = telling => Err(Failure::internal("waiting ended")),
    }
}

/// The first campaign that is won. The others are withdrawn.
async fn first(campaigns: Vec<(Campaign, Option<u16>)>) -> Outcome<Won> {
    let mut elections: Vec<_> = campaigns
        .into_iter()
        .map(|(mut campaign, slot)| {
            Box::pin(async move {
                let leadership = campaign.elected().await;
                (leadership, campaign, slot)
            })
        })
        .collect();
    let (leadership, campaign, slot) = std::future::poll_fn(|context| {
        elections
            .iter_mut()
            .find_map(|election| match election.as_mut().poll(context) {
                std::task::Poll::Ready(won) => Some(won),
                std::task::Poll::Pending => None,
            })
            .map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    })
    .await;
    let leadership = leadership.map_err(Failure::internal)?;
    let lease = leadership.lease().as_str().to_owned();
    Ok(Won { lease, slot, leadership, campaign: Some(campaign) })
}

/// Says whom it waits for, and again whenever that changes.
async fn tell(
    session: &Session,
    arguments: &RunArguments,
    node: &Node,
    leases: &[(String, Option<u16>)],
) {
    let mut pause = SILENCE;
    let mut said = None;
    loop {
        tokio::time::sleep(pause).await;
        pause = LOOK;
        let who = holder(node, leases).await;
        if who != said {
            let remark = who.as_deref().unwrap_or("nobody has it");
            session.remark(format!("waiting for {}: {remark}", arguments.lease));
            notify(&format!("STATUS=waiting for {}: {remark}", arguments.lease));
            said = who;
        }
    }
}

/// Who has what is wanted, as far as the store says.
async fn holder(node: &Node, leases: &[(String, Option<u16>)]) -> Option<String> {
    let (lease, _) = leases.first()?;
    if leases.len() > 1 {
        return Some(format!("all {} slots are taken", leases.len()));
    }
    match node.leader(lease).await {
        Ok(Some(leader)) => Some(format!("{} has it in term {}", plain(&leader.node), leader.term)),
        Ok(None) => None,
        Err(error) => Some(error.to_string()),
    }
}
