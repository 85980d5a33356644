//! A case of bad input, and how all of them are judged.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use incumbent::clock;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::common::{Trial, program};

/// A password that no case may make anybody print.
pub(crate) const SECRET: &str = "hunter2";

/// Within this time every case has ended, also on a machine that is busy with something else.
const BOUND: Duration = Duration::from_secs(60);

/// Never said on standard error, whatever was given.
const NEVER: [&str; 4] = ["panicked", "RUST_BACKTRACE", "bug in incumbent", SECRET];

/// What is given, and what has to come of it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    words: Vec<OsString>,
    variables: Vec<(&'static str, Option<OsString>)>,
    files: Vec<(&'static str, Vec<u8>)>,
    script: Option<&'static str>,
    code: i32,
    said: Vec<String>,
    never: Vec<&'static str>,
}

/// A case that ends with this code, and says the value that is wrong and the next step. The store of
/// the case is `sqlite:trial.db` in its directory, unless it says otherwise.
pub(crate) fn case<W: AsRef<OsStr>>(code: i32, words: &[W], value: &str, next: &str) -> Case {
    assert!(code == 0 || !next.is_empty(), "a next step is missing");
    Case {
        words: words.iter().map(|word| word.as_ref().to_owned()).collect(),
        variables: Vec::new(),
        files: Vec::new(),
        script: None,
        code,
        said: vec![value.to_owned(), next.to_owned()],
        never: NEVER.to_vec(),
    }
}

/// One that isn't understood.
pub(crate) fn refused<W: AsRef<OsStr>>(words: &[W], value: &str, next: &str) -> Case {
    case(64, words, value, next)
}

/// One that looks odd, and is right.
pub(crate) fn taken<W: AsRef<OsStr>>(words: &[W]) -> Case {
    case(0, words, "", "")
}

impl Case {
    /// With this variable.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, Some(value.into())));
        self
    }

    /// Without this variable.
    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.variables.push((name, None));
        self
    }

    /// With this file in its directory.
    pub(crate) fn file(mut self, name: &'static str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((name, content.into()));
        self
    }

    /// By a shell, which finds the program and its arguments in `"$0" "$@"`.
    pub(crate) fn by(mut self, script: &'static str) -> Self {
        self.script = Some(script);
        self
    }

    /// That has to be said too.
    pub(crate) fn says(mut self, part: &str) -> Self {
        self.said.push(part.to_owned());
        self
    }

    /// That must not be said.
    pub(crate) fn never(mut self, part: &'static str) -> Self {
        self.never.push(part);
        self
    }

    /// Nothing is said, because there is nobody to say it to.
    pub(crate) fn unheard(mut self) -> Self {
        self.said.clear();
        self
    }

    /// What is given, by which cases differ.
    pub(crate) fn input(&self) -> String {
        let Self { words, variables, files, script, .. } = self;
        format!("{words:?} {variables:?} {files:?} {script:?}")
    }

    fn command(&self, place: &Place) -> Command {
        let plain = program(&[]);
        let mut command = match self.script {
            Some(script) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(script).arg(plain.get_program());
                shell
            }
            None => Command::new(plain.get_program()),
        };
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("INCUMBENT_STORE", "sqlite:trial.db").env("INCUMBENT_CLUSTER", "trial");
        command.env("HOME", place.path("home")).env_remove("XDG_STATE_HOME");
        command.env_remove("XDG_CONFIG_HOME").args(&self.words).current_dir(place.path("work"));
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let file = |name: &str| File::create(place.path(name)).unwrap();
        // A group of its own, so that all of it can be ended.
        command.process_group(0).stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
        command
    }

    /// What was wrong with it, if anything.
    fn judged(&self, template: &Path) -> Result<(), String> {
        let place = Place::new(template);
        for (name, content) in &self.files {
            std::fs::write(place.path("work").join(name), content).unwrap();
        }
        let before = place.content();
        let mut child = self.command(&place).spawn().unwrap();
        let ended = ended(&mut child);
        let (said, shown) = (place.text("err"), place.text("out"));
        let judge = || {
            let code = ended.ok_or(format!("it has not ended after {BOUND:?}"))?;
            let should = self.code;
            expect(code == should, || format!("it ended with {code} and not with {should}"))?;
            for part in &self.said {
                expect(said.contains(part), || format!("{part:?} isn't said"))?;
            }
            // The table of exit codes names them.
            let help = said.contains("Exit codes:");
            let never = self.never.iter().find(|never| said.contains(**never) && !help);
            expect(never.is_none(), || format!("{never:?} is said"))?;
            expect(!shown.contains(SECRET), || "a password is shown".to_owned())?;
            let raw = said.chars().find(|c| obeyed(*c));
            expect(raw.is_none(), || format!("{raw:?} goes to the terminal"))?;
            let refused = code == 64;
            let after = place.content();
            expect(!refused || after == before, || {
                format!("it was refused, and there is {:?} now", after.difference(&before))
            })
        };
        judge().map_err(|why: String| {
            let input = self.input();
            format!("{input:.400}\n  {why}\n  stdout: {shown:.300}\n  stderr: {said:.1500}")
        })
    }
}

fn expect(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// Whether a terminal does something else with this than to show it.
fn obeyed(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Its code, or that of shells for a signal; nothing if it has to be ended.
fn ended(child: &mut Child) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    let deadline = clock::now() + BOUND;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        }
        if clock::now() > deadline {
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            let _ = child.wait();
            return None;
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Where one case plays: its directory, its home, and what it prints.
struct Place(TempDir);

impl Place {
    fn new(template: &Path) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for directory in ["work", "home"] {
            std::fs::create_dir(place.path(directory)).unwrap();
        }
        // With its log, in which the newest records may still be.
        for end in ["", "-wal", "-shm"] {
            let file = template.with_file_name(format!("trial.db{end}"));
            if file.exists() {
                std::fs::copy(file, place.path(&format!("work/trial.db{end}"))).unwrap();
            }
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(name)).unwrap()).into_owned()
    }

    /// The files in its directory and in its home, but for those that SQLite keeps beside one that is
    /// open.
    fn content(&self) -> BTreeSet<PathBuf> {
        let list = |name| std::fs::read_dir(self.path(name)).into_iter().flatten().flatten();
        let paths = list("work").chain(list("home")).map(|file| file.path());
        paths.filter(|path| !path.to_string_lossy().contains(".db-")).collect()
    }
}

/// Judges all of them, several at a time, and tells of all that are wrong.
#[track_caller]
pub(crate) fn judge(cases: &[Case]) {
    let trial = Trial::with_store();
    // So that there is something to lose.
    trial.run(&["freeze"]).succeeds();
    let template = trial.path().join("trial.db");
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if let Err(why) = case.judged(&template) {
                        wrong.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
