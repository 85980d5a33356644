//! A terminal of its own for a program, as a terminal emulator has one.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::PATIENCE;

/// Written by the test itself when a program has ended.
const END: &str = "\u{3}the end\u{3}";

/// A program on a terminal of 80 columns and 24 lines.
pub struct Terminal {
    keyboard: File,
    line: File,
    shown: Arc<Mutex<Vec<u8>>>,
    child: Child,
}

impl Terminal {
    pub fn run(mut command: Command) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keyboard).expect("it may be used");
        unlockpt(&keyboard).expect("it can be opened");
        let name = ptsname(&keyboard, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line = File::from(rustix::fs::open(name, flags, Mode::empty()).expect("it opens"));
        tcsetwinsize(&line, size(80)).expect("it has a size");
        let end = || Stdio::from(line.try_clone().expect("one more end"));
        command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().expect("it starts");
        let keyboard = File::from(keyboard);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, seen) = (keyboard.try_clone().expect("one more end"), shown.clone());
        std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut some) {
                let text = some.get(..count).unwrap_or_default();
                seen.lock().expect("nobody panicked").extend_from_slice(text);
            }
        });
        Self { keyboard, line, shown, child }
    }

    /// Whether lines are edited and shown as they are typed, as a shell expects it.
    pub fn is_as_a_shell_expects(&self) -> bool {
        let modes = tcgetattr(&self.line).expect("a terminal").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// All that was ever written to it.
    fn text(&self) -> String {
        text(&self.shown)
    }

    /// Waits until all of these words were written.
    #[track_caller]
    pub fn until_shown(&self, words: &[&str]) {
        self.until(&format!("{words:?}"), |text| words.iter().all(|word| text.contains(word)));
    }

    /// Waits until what was written is as wanted. What is drawn is what differs from before, so
    /// that a word may come in pieces. Another size makes a program draw all anew, which it does
    /// with the next picture: no signal tells it, for one that comes together with a key makes
    /// crossterm forget the key until the next.
    #[track_caller]
    pub fn until(&self, what: &str, mut wanted: impl FnMut(&str) -> bool) {
        let mut asked = 0;
        wait(
            || format!("{what} in {:?}", self.text()),
            || {
                asked += 1;
                if asked % 10 == 0 {
                    let columns = if asked % 20 == 0 { 80 } else { 90 };
                    tcsetwinsize(&self.line, size(columns)).expect("it has a size");
                }
                wanted(&self.text())
            },
        );
    }

    pub fn press(&mut self, keys: impl AsRef<[u8]>) {
        self.keyboard.write_all(keys.as_ref()).expect("it takes keys");
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is there");
    }

    /// Waits for the end of the program, and gives its code and all that was ever written.
    #[track_caller]
    pub fn code(&mut self) -> (Option<i32>, String) {
        let status = self.end();
        // What it wrote last may still be on its way. What is written after it comes after it.
        self.line.write_all(END.as_bytes()).expect("it takes one more word");
        self.until("all of it", |text| text.ends_with(END));
        (status.code(), self.text().trim_end_matches(END).to_owned())
    }

    #[track_caller]
    fn end(&mut self) -> ExitStatus {
        let mut status = None;
        let shown = Arc::clone(&self.shown);
        wait(
            || format!("its end after {:?}", text(&shown)),
            || {
                status = self.child.try_wait().expect("a child");
                status.is_some()
            },
        );
        status.expect("it has ended")
    }

    /// Waits for the end of the program, and that the terminal is given back.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let status = self.end();
        self.until_shown(&["\u{1b}[?1049l"]);
        assert!(self.is_as_a_shell_expects(), "the terminal is not as it was");
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(shown: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&shown.lock().expect("nobody panicked")).into_owned()
}

fn size(columns: u16) -> Winsize {
    Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

#[track_caller]
#[allow(clippy::disallowed_methods, reason = "this test has nothing else to do")]
fn wait(what: impl Fn() -> String, mut done: impl FnMut() -> bool) {
    let step = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    while !done() {
        assert!(waited < PATIENCE, "waited in vain for {}", what());
        std::thread::sleep(step);
        waited += step;
    }
}
