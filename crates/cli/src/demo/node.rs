//! One node of the demo: a process of its own that stands for some leases, runs some duties and
//! reports what becomes of it.

mod work;

use std::io::Read;
use std::time::Duration;

use clap::Args;
use incumbent::{Campaign, Event, Leadership, Loss, MemberState, Node, clock, witness};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use super::word::Word;
use crate::exit::{Failure, Outcome};
use crate::place::Place;
use crate::span;

/// How often a node asks itself whether it leads.
const ASK: Duration = Duration::from_millis(20);

/// How many questions go into one report.
const ASKED_PER_REPORT: u32 = 5;

/// How long nothing may have changed before duties move for the sake of evenness: short, for
/// people who watch.
const QUIET: Duration = Duration::from_secs(1);

/// What the demo tells one of its nodes.
#[derive(Args, Debug)]
pub(crate) struct NodeArguments {
    /// Its name.
    #[arg(long)]
    name: String,
    /// Its ttl.
    #[arg(long, value_parser = span::parse)]
    ttl: Duration,
    /// The leases that it stands for.
    #[arg(long = "lease", required = true)]
    leases: Vec<String>,
    /// The process of the demo, without which it won't live.
    #[arg(long)]
    parent: i32,
}

/// Runs the node until it is told to leave.
pub(crate) fn run(place: &Place, arguments: &NodeArguments) -> Outcome {
    die_with(arguments.parent)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(serve(place, arguments));
    if let Err(failure) = &served {
        Word::Failed { why: failure.message.clone() }.say();
    }
    served
}

/// No node outlives its demo, however that ends. The kernel kills it, even while it is paused;
/// where the kernel can't, the end of its standard input does.
fn die_with(parent: i32) -> Outcome {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(std::io::Error::from)?;
    let now = rustix::process::getppid().map(rustix::process::Pid::as_raw_nonzero);
    if now.map(std::num::NonZero::get) != Some(parent) {
        return Err(Failure::usage("demo-node is started by `incumbent demo` and by nobody else"));
    }
    std::thread::Builder::new().name("stdin".to_owned()).spawn(|| {
        let mut nothing = [0; 64];
        let mut stdin = std::io::stdin();
        while !matches!(stdin.read(&mut nothing), Ok(0) | Err(_)) {}
        std::process::exit(0);
    })?;
    Ok(())
}

async fn serve(place: &Place, arguments: &NodeArguments) -> Outcome {
    let mut terminate = signal(SignalKind::terminate())?;
    let store = place.open().await?;
    let mut builder = Node::builder()
        .cluster(&place.cluster)
        .name(&arguments.name)
        .address(format!("pid {}", std::process::id()))
        .ttl(arguments.ttl)
        .rebalance_after(arguments.ttl.min(QUIET));
    if arguments.ttl < Duration::from_secs(3) {
        builder = builder.allow_short_ttl();
    }
    // The others see the end of this process at once: a kill costs them milliseconds, and only a
    // pause the ttl.
    if let Ok(evidence) = witness::evidence(&[std::process::id()], None) {
        builder = builder.evidence(evidence);
    }
    let node = builder.join(store).await?;
    let mut notices = node.subscribe();
    for lease in &arguments.leases {
        let campaign = node.campaign(lease).map_err(Failure::usage)?;
        Handle::current().spawn(stand(campaign));
    }
    let _serving = node.serve(work::projections()).map_err(Failure::internal)?;
    let leaving = async {
        terminate.recv().await;
        node.leave().await
    };
    tokio::pin!(leaving);
    loop {
        tokio::select! {
            left = &mut leaving => {
                left.map_err(Failure::wrong)?;
                Word::Left.say();
                return Ok(());
            }
            Some(notice) = notices.recv() => tell(notice.event),
        }
    }
}

/// Tells about members and the ends of duties; the rest is told by those who lead and work.
fn tell(event: Event) {
    let joined = |member: String| Word::Joined { member, at: clock::now().as_nanos() }.say();
    match event {
        Event::State(state) => {
            if let Some(member) = state.member {
                joined(member.as_str().to_owned());
            }
        }
        Event::Joined { member } => joined(member.as_str().to_owned()),
        Event::Ended { member, why } => {
            Word::Ended { member: member.as_str().to_owned(), why: reason(why).to_owned() }.say();
        }
        Event::DutyStopped { duty, term, why } => {
            let (expired, why) = (expired(why), reason(why).to_owned());
            Word::Stopped { duty: duty.as_str().to_owned(), term, why, expired }.say();
        }
        Event::DutyFailed { duty, error, .. } => {
            Word::Failed { why: format!("{duty} failed: {error}") }.say();
        }
        _ => {}
    }
}

async fn stand(mut campaign: Campaign) {
    while let Ok(leadership) = campaign.elected().await {
        lead(&leadership).await;
        // Only now is the lease freed: what was reported before is what was believed.
        drop(leadership);
    }
}

/// Asks all the time whether it leads, as leader-only work would before each of its steps.
async fn lead(leadership: &Leadership) {
    let lease = leadership.lease().as_str().to_owned();
    let term = leadership.number();
    if !leadership.is_held() {
        return;
    }
    let mut asked = clock::now().as_nanos();
    Word::Elected { lease: lease.clone(), term, at: asked }.say();
    let mut questions = 0;
    loop {
        let now = clock::now().as_nanos();
        if !leadership.is_held() {
            break;
        }
        asked = now;
        if questions % ASKED_PER_REPORT == 0 {
            let until = leadership.trusted_until().as_nanos();
            Word::Held { lease: lease.clone(), term, asked, until }.say();
        }
        questions += 1;
        tokio::select! {
            _ = leadership.lost() => {}
            () = tokio::time::sleep(ASK) => {}
        }
    }
    let lost = leadership.lost().await;
    let (at, why) = (clock::now().as_nanos(), reason(lost.why).to_owned());
    Word::Lost { lease, term, asked, at, why, expired: expired(lost.why) }.say();
}

/// Whether trust ran out, here or as others saw it.
fn expired(why: Loss) -> bool {
    matches!(why, Loss::CannotTell | Loss::Closed(MemberState::Expired))
}

/// Why, in as few words as fit beside the rest.
fn reason(why: Loss) -> &'static str {
    match why {
        Loss::WorkEnded => "the work ended",
        Loss::Resigned => "resigned",
        Loss::Withdrawn => "withdrawn",
        Loss::Leaving => "leaving",
        Loss::CannotTell => "no beat got through in time",
        Loss::Closed(MemberState::Expired) => "others saw it expire",
        Loss::Closed(MemberState::Evicted) => "evicted",
        Loss::Closed(MemberState::Alive | MemberState::Left) => "closed",
        Loss::Vanished => "its record is gone",
        Loss::Superseded => "the store names another",
        Loss::Stuck => "the work is stuck",
        Loss::Broken => "incumbent itself failed",
        _ => "lost",
    }
}
