//! The holder's side: it starts a guardian, gives orders and hears how it went.

use std::ffi::OsString;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use incumbent::Moment;
use incumbent::witness::{self, Evidence, Mark};
use tokio::sync::oneshot;

use crate::channel::Channel;
use crate::ending::{Ending, Status};
use crate::message::{Isolation, Layout, Order, Preparation, Report, Ward};
use crate::{launch, sweep};

/// How a command is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Whether it gets a PID namespace of its own.
    pub isolation: Isolation,
    /// By how much it is asked to end before its deadline.
    pub warning: Duration,
    /// How long after the deadline the kernel ends what has not ended by then.
    pub fuse: Duration,
}

/// Says until when the command may run, as far as is known at that very moment.
type Deadline = Arc<OnceLock<Box<dyn Fn() -> Moment + Send + Sync>>>;

/// A guardian with all that is needed but the command, which is started once. For processes that
/// run this one command and start nothing else: whatever is below them is killed in the end.
///
/// Dropping it ends all.
pub struct Guard {
    channel: Arc<Channel>,
    deadline: Deadline,
    layout: Layout,
    last: u32,
    mark: Mark,
    foreground: bool,
    ended: oneshot::Receiver<Ending>,
}

impl Guard {
    /// Starts a guardian. It does nothing until it is told to.
    ///
    /// # Errors
    /// If no guardian can be started, or a namespace was asked for that can't be had.
    pub fn prepare(plan: &Plan) -> io::Result<Self> {
        sweep::adopt_orphans()?;
        let privileged = rustix::process::geteuid().is_root();
        match plan.isolation {
            Isolation::Never => Self::attempt(plan, false),
            Isolation::Always => Self::attempt(plan, true),
            Isolation::Auto if privileged => {
                Self::attempt(plan, true).or_else(|_| Self::attempt(plan, false))
            }
            Isolation::Auto => Self::attempt(plan, false),
        }
    }

    fn attempt(plan: &Plan, isolate: bool) -> io::Result<Self> {
        let (channel, end) = Channel::pair()?;
        let mark = mark();
        let foreground = launch::has_terminal();
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let preparation = Preparation {
            isolate,
            warning_ns: nanos(plan.warning),
            fuse_ns: nanos(plan.fuse),
            mark: mark.path.clone(),
            foreground,
        };
        let guardian = launch::own_program(crate::GUARDIAN)
            .args(&plan.command)
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_PID")
            .env_remove("WATCHDOG_USEC")
            // It may hold a password, and the command can read the environment of its ancestors.
            .env_remove("INCUMBENT_STORE")
            .stdin(launch::speaks_through(end))
            // Signals of the terminal are for the command alone.
            .process_group(0)
            .spawn()?;
        channel.send_with(&Order::Prepare(preparation), Some(io::stdin().as_fd()))?;
        let last = match channel.receive::<Report>() {
            Ok(Some((Report::Ready { last }, _))) => u32::try_from(last).unwrap_or_default(),
            other => {
                sweep::sweep(|_, _| {});
                return Err(match other {
                    Ok(Some((Report::Failed(why), _))) => io::Error::other(why),
                    Ok(_) => io::Error::other(format!("guardian {} ended at once", guardian.id())),
                    Err(error) => error,
                });
            }
        };
        let layout = if isolate { Layout::Isolated } else { Layout::Plain };
        let channel = Arc::new(channel);
        let deadline = Deadline::default();
        let ended = listen(Arc::clone(&channel), Arc::clone(&deadline))?;
        Ok(Self { channel, deadline, layout, last, mark, foreground, ended })
    }

    /// How the command is supervised.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// What proves that nothing of the command is left, should this process die.
    ///
    /// # Errors
    /// If the system doesn't tell what is needed. Then nothing is proven, and others wait.
    pub fn evidence(&self) -> io::Result<Evidence> {
        let mark = match self.layout {
            Layout::Plain => Some(self.mark.clone()),
            Layout::Isolated => None,
        };
        witness::evidence(&[std::process::id(), self.last], mark)
    }

    /// Starts the command with these variables beside those of this process. Nothing of it runs
    /// past the deadline, which is asked for once more, on a thread of its own, before the command
    /// is told that it is near.
    pub fn start(
        &self,
        variables: Vec<(String, String)>,
        deadline: impl Fn() -> Moment + Send + Sync + 'static,
    ) {
        let until = deadline().as_nanos();
        let _ = self.deadline.set(Box::new(deadline));
        self.order(&Order::Start { variables, deadline: until });
    }

    /// Puts the deadline off; one that has come ends all.
    pub fn extend(&self, deadline: Moment) {
        self.order(&until(deadline));
    }

    /// Sends the command's process group a signal.
    pub fn signal(&self, signal: i32) {
        self.order(&Order::Signal(signal));
    }

    /// Sends it a signal, and kills what is left after the grace.
    pub fn stop(&self, signal: i32, grace: Duration) {
        let grace_ns = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX);
        self.order(&Order::Stop { signal, grace_ns });
    }

    /// What lets the guardian close a member, should this process die.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust(Arc::clone(&self.channel))
    }

    /// Kills it now.
    pub fn kill(&self) {
        self.order(&Order::Kill);
    }

    /// Waits until nothing of the command is left. Cancel-safe.
    pub async fn ended(&mut self) -> Ending {
        let gone = Ending { status: Status::KILLED, overdue: false, warned: false };
        if self.ended.is_terminated() {
            return gone;
        }
        let ending = (&mut self.ended).await.unwrap_or(gone);
        if self.foreground {
            launch::take_terminal();
        }
        ending
    }

    /// Ends the guardian, and what it guards.
    pub async fn retire(mut self) {
        self.close();
        self.ended().await;
    }

    fn close(&self) {
        // This process lives, and looks after its member itself.
        self.order(&Order::Release);
        let _ = rustix::net::shutdown(&*self.channel, rustix::net::Shutdown::Both);
    }

    /// A guardian that can't be reached is dead, which shows elsewhere.
    fn order(&self, order: &Order) {
        let _ = self.channel.send(order);
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// Tells a guardian which member to close, should this process die.
#[derive(Clone, Debug)]
pub struct Trust(Arc<Channel>);

impl Trust {
    /// This one, and no other that was named before.
    pub fn entrust(&self, ward: Ward) {
        let _ = self.0.send(&Order::Entrust(ward));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.close();
        // Only of use to others if this process dies, which it didn't.
        let _ = std::fs::remove_file(&self.mark.path);
    }
}

fn until(deadline: Moment) -> Order {
    match deadline {
        Moment::START => Order::Kill,
        deadline => Order::Deadline(deadline.as_nanos()),
    }
}

/// Hears how it went, on a thread of its own, and answers questions. Should the guardian die before it has swept, that
/// is done here: what it guarded has become this process's.
fn listen(channel: Arc<Channel>, deadline: Deadline) -> io::Result<oneshot::Receiver<Ending>> {
    let (sender, receiver) = oneshot::channel();
    let listening = move || {
        let mut ending = Ending { status: Status::KILLED, overdue: false, warned: false };
        while let Ok(Some((report, _))) = channel.receive::<Report>() {
            match report {
                Report::Ended(said) => {
                    ending = said;
                    break;
                }
                Report::Asking => {
                    if let Some(deadline) = deadline.get() {
                        let _ = channel.send(&until(deadline()));
                    }
                }
                Report::Ready { .. } | Report::Failed(_) | Report::Started => {}
            }
        }
        sweep::sweep(|_, _| {});
        let _ = sender.send(ending);
    };
    std::thread::Builder::new().name("guardian".to_owned()).spawn(listening)?;
    Ok(receiver)
}

/// A file that nobody else will make.
fn mark() -> Mark {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(std::path::PathBuf::from);
    let directory = named.filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir);
    let random = || std::hash::RandomState::new().build_hasher().finish();
    let name = format!("incumbent-{}-{:016x}{:016x}", std::process::id(), random(), random());
    let path = directory.join(name).to_string_lossy().into_owned();
    Mark { path, owner: rustix::process::geteuid().as_raw() }
}
