//! How commands end: one table of exit codes, and errors that know theirs.

use std::fmt;

use incumbent::store::ErrorKind;
use incumbent::{ClusterError, JoinError, NameError, OpenError};

/// The exit codes as `--help` and `docs/cli.md` show them.
pub(crate) const TABLE: &str = "\
Exit codes:
   0  success
   1  nobody leads, no such member, or something was wrong
  64  the command line or a value in it is not understood
  69  the store can't be reached or refuses
  70  a bug in incumbent
  71  the system lacks something, or run: the command can't be supervised
  74  the output can't be written
  75  not in time: nothing changed yet, try again
  76  run: the lease was lost, or given up on request
  78  doctor: it works, but something should be changed
 126  run: the command can't be run
 127  run: the command wasn't found
 130  interrupted
   n  run: the code of the command; 128 or more if a signal ended it";

/// What to do about a store that says nothing about that itself.
const UNREACHED: &str = ". Check that its server is running, that the host and the port are right, and that it \
                         can be reached from here";

/// What a command ends with, unless it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Nobody leads, no such member, or something was wrong.
    Wrong,
    /// The command line or a value in it is not understood.
    Usage,
    /// The store can't be reached or refuses.
    Unreachable,
    /// A bug in incumbent.
    Internal,
    /// Not in time.
    Late,
    /// The lease was lost.
    Lost,
    /// The system doesn't give what is needed, or the command can't be supervised.
    Unsupervised,
    /// The output can't be written.
    Unwritten,
    /// It works, but something should be changed.
    Advised,
    /// By a signal.
    Interrupted,
    /// What the command of `run` ended with.
    Command(u8),
}

impl Code {
    /// The number that the shell sees.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Wrong => 1,
            Self::Usage => 64,
            Self::Unreachable => 69,
            Self::Internal => 70,
            Self::Late => 75,
            Self::Lost => 76,
            Self::Unsupervised => 71,
            Self::Unwritten => 74,
            Self::Advised => 78,
            Self::Interrupted => 130,
            Self::Command(code) => code,
        }
    }
}

/// Why a command failed, and with which code it ends.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The code.
    pub(crate) code: Code,
    /// The cause, the value that caused it and the next step; empty if all was said already.
    pub(crate) message: String,
}

/// What a command comes to.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure of this code with this message.
    pub(crate) fn new(code: Code, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }

    /// Nobody leads, no such member, or something was wrong.
    pub(crate) fn wrong(message: impl fmt::Display) -> Self {
        Self::new(Code::Wrong, message)
    }

    /// The command line or a value in it is not understood.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Code::Usage, message)
    }

    /// A bug, or a system without what every system has.
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        Self::new(Code::Internal, message)
    }

    /// Not in time.
    pub(crate) fn late(message: impl fmt::Display) -> Self {
        Self::new(Code::Late, message)
    }

    /// A code that says it all.
    pub(crate) fn silent(code: Code) -> Self {
        Self::new(code, "")
    }

    /// The command has said already what was wrong.
    pub(crate) fn said() -> Self {
        Self::new(Code::Wrong, "")
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        // Whoever set a variable elsewhere is told that it may be that one.
        match named(&error) {
            "cluster" => Self::usage(format!("{error} (set by --cluster or INCUMBENT_CLUSTER)")),
            _ => Self::usage(error),
        }
    }
}

/// What was to be named.
fn named(error: &NameError) -> &'static str {
    match error {
        NameError::Empty { what }
        | NameError::TooLong { what, .. }
        | NameError::Control { what, .. } => what,
        NameError::Slash { .. } | NameError::NoFamily { .. } | NameError::Reserved { .. } => "",
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let code = match &error {
            OpenError::UnknownScheme { .. }
            | OpenError::NotBuilt { .. }
            | OpenError::Url { .. } => Code::Usage,
            OpenError::Store { source, .. } => {
                let silent = source.kind != ErrorKind::Rejected && !source.message.contains(". ");
                let next = if silent { UNREACHED } else { "" };
                return Self::new(Code::Unreachable, format!("{error}{next}"));
            }
            _ => Code::Unsupervised,
        };
        Self::new(code, error)
    }
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Self {
        let code = match error {
            ClusterError::Name(error) => return error.into(),
            ClusterError::Ambiguous { .. } => Code::Usage,
            ClusterError::Store(ref store) => match store.kind {
                ErrorKind::Unavailable | ErrorKind::Unknown | ErrorKind::Rejected => {
                    Code::Unreachable
                }
            },
            ClusterError::Unreadable(_) => {
                return Self::wrong(format!("{error}. {}", crate::unread::NEXT));
            }
            ClusterError::NobodyLeads { .. }
            | ClusterError::OtherTerm { .. }
            | ClusterError::NoSuchMember { .. } => Code::Wrong,
            ClusterError::Contended { .. } => Code::Late,
            _ => Code::Unsupervised,
        };
        Self::new(code, error)
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        let code = match error {
            JoinError::Open(error) => return error.into(),
            JoinError::Name(error) if named(&error) == "node" => {
                return Self::usage(format!(
                    "{error} (set by --node, INCUMBENT_NODE or the configuration file)"
                ));
            }
            JoinError::Name(error) => return error.into(),
            JoinError::Timing(_) | JoinError::Environment(_) => Code::Usage,
            JoinError::Rejected(_) | JoinError::TimedOut { .. } => Code::Unreachable,
            _ => Code::Unsupervised,
        };
        Self::new(code, error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Code::Unsupervised, format!("{error}. {}", remedy(&error)))
    }
}

/// What to do about a system that doesn't give what is needed.
fn remedy(error: &std::io::Error) -> &'static str {
    use rustix::io::Errno;
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => "Let this process open more files: raise its limit (ulimit -n)",
        Some(Errno::NFILE) => "The system has run out of open files: raise fs.file-max",
        Some(Errno::AGAIN) => "Let this user start more processes and threads (ulimit -u)",
        Some(Errno::NOMEM) => "Give this process more memory",
        _ => "Check the limits and permissions of this process",
    }
}
