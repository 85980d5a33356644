//! `incumbent pin`, `pause`, `move`, `cordon`, `drain` and the like: what operators ask of duties.
//!
//! It is kept in the store and obeyed whoever leads. Most of it holds until it is taken back.

use clap::Args;
use incumbent::{Asked, Strictness};
use serde_json::json;

use super::duties;
use crate::exit::Outcome;
use crate::out::{plain, say};
use crate::session::Session;
use crate::unknown::{self, Named};

/// What `pin --help` shows below.
pub(crate) const PIN_EXAMPLES: &str = "\
It holds until `incumbent unpin`. A preferred pin moves the duty with the next rebalancing; a required
one at once, and if that node is gone the duty runs nowhere.

Examples:
  incumbent pin projection/orders --to billing-2
  incumbent pin projection/orders --to billing-2 --required";

/// What `pause --help` shows below.
pub(crate) const PAUSE_EXAMPLES: &str = "\
It holds until `incumbent resume`, whoever leads.

Examples:
  incumbent pause projection/orders
  incumbent resume projection/orders";

/// What `move --help` shows below.
pub(crate) const MOVE_EXAMPLES: &str = "\
The duty moves once, if that node can run it, and may be moved again later. `pin` makes it stay.

Examples:
  incumbent move projection/orders --to billing-2";

/// What `cordon --help` and `drain --help` show below.
pub(crate) const NODE_EXAMPLES: &str = "\
A cordoned node keeps its duties and gets no more; a drained one is emptied as far as the others have
room. Both hold for every node of that name until they are taken back.

Examples:
  incumbent cordon billing-2
  incumbent drain billing-2
  incumbent undrain billing-2";

/// What `freeze --help` and `thaw --help` show below.
pub(crate) const FREEZE_EXAMPLES: &str = "\
Duties that lost their node are still placed at once.

Examples:
  incumbent freeze
  incumbent thaw";

/// Which duty.
#[derive(Args, Debug)]
pub(crate) struct DutyArguments {
    /// The duty, as family/name
    #[arg(value_name = "DUTY", value_parser = duties::named)]
    duty: String,
}

/// Which node.
#[derive(Args, Debug)]
pub(crate) struct NodeName {
    /// The node's name
    #[arg(value_name = "NODE")]
    node: String,
}

/// Which duty, and where to.
#[derive(Args, Debug)]
pub(crate) struct MoveArguments {
    /// The duty, as family/name
    #[arg(value_name = "DUTY", value_parser = duties::named)]
    duty: String,
    /// The node's name
    #[arg(long, value_name = "NODE")]
    to: String,
}

/// Which duty, where to, and how much it matters.
#[derive(Args, Debug)]
pub(crate) struct PinArguments {
    #[command(flatten)]
    target: MoveArguments,
    /// There or nowhere
    #[arg(long)]
    required: bool,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order<'a> {
    Pin(&'a PinArguments),
    Unpin(&'a DutyArguments),
    Pause(&'a DutyArguments),
    Resume(&'a DutyArguments),
    Move(&'a MoveArguments),
    Cordon(&'a NodeName),
    Uncordon(&'a NodeName),
    Drain(&'a NodeName),
    Undrain(&'a NodeName),
    Freeze,
    Thaw,
}

impl<'a> Order<'a> {
    /// The names that it is about.
    fn names(self) -> Vec<(Named, &'a str)> {
        match self {
            Self::Pin(PinArguments { target, .. }) | Self::Move(target) => {
                vec![(Named::Duty, &target.duty), (Named::Node, &target.to)]
            }
            Self::Unpin(duty) | Self::Pause(duty) | Self::Resume(duty) => {
                vec![(Named::Duty, &duty.duty)]
            }
            Self::Cordon(node) | Self::Uncordon(node) | Self::Drain(node) | Self::Undrain(node) => {
                vec![(Named::Node, &node.node)]
            }
            Self::Freeze | Self::Thaw => Vec::new(),
        }
    }
}

/// Asks, and says what is in force now.
pub(crate) async fn run(session: &Session, order: Order<'_>) -> Outcome {
    let cluster = session.place.cluster_to_change().await?;
    let asked = match order {
        Order::Pin(pin) => {
            let strictness =
                if pin.required { Strictness::Required } else { Strictness::Preferred };
            cluster.pin(&pin.target.duty, &pin.target.to, strictness).await?
        }
        Order::Unpin(duty) => cluster.unpin(&duty.duty).await?,
        Order::Pause(duty) => cluster.pause(&duty.duty).await?,
        Order::Resume(duty) => cluster.resume(&duty.duty).await?,
        Order::Move(step) => cluster.move_duty(&step.duty, &step.to).await?,
        Order::Cordon(node) => cluster.cordon(&node.node).await?,
        Order::Uncordon(node) => cluster.uncordon(&node.node).await?,
        Order::Drain(node) => cluster.drain(&node.node).await?,
        Order::Undrain(node) => cluster.undrain(&node.node).await?,
        Order::Freeze => cluster.freeze().await?,
        Order::Thaw => cluster.thaw().await?,
    };
    if !asked.unknown.is_empty() || matches!(order, Order::Freeze | Order::Thaw) {
        unknown::warn(session, &cluster, &order.names(), &asked.unknown).await?;
    }
    if session.json {
        session.print_json(&json!({
            "done": !asked.intents.is_empty(),
            "intents": asked.intents,
            "unknown": asked.unknown,
        }));
        return Ok(());
    }
    tell(order, &asked);
    Ok(())
}

fn tell(order: Order<'_>, asked: &Asked) {
    if asked.intents.is_empty() {
        say!("There was nothing to withdraw.");
        return;
    }
    match order {
        Order::Pin(pin) => {
            let (duty, to) = (plain(&pin.target.duty), plain(&pin.target.to));
            let how = if pin.required { "there or nowhere" } else { "there if it fits" };
            say!("{duty} is pinned to {to}, {how}, until `incumbent unpin`")
        }
        Order::Unpin(duty) => say!("{} is no longer pinned", plain(&duty.duty)),
        Order::Pause(duty) => say!("{} is paused until `incumbent resume`", plain(&duty.duty)),
        Order::Resume(duty) => say!("{} is no longer paused", plain(&duty.duty)),
        Order::Move(step) => {
            say!("{} will move to {}: see `incumbent duties`", plain(&step.duty), plain(&step.to))
        }
        Order::Cordon(node) => {
            say!("{} gets no more duties until `incumbent uncordon`", plain(&node.node))
        }
        Order::Uncordon(node) => say!("{} may get duties again", plain(&node.node)),
        Order::Drain(node) => say!("{} is emptied until `incumbent undrain`", plain(&node.node)),
        Order::Undrain(node) => say!("{} may have duties again", plain(&node.node)),
        Order::Freeze => say!("nothing moves just to balance the load until `incumbent thaw`"),
        Order::Thaw => say!("duties may move again to balance the load"),
    };
}
