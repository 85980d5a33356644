//! What is typed on a terminal, and terminals that can't do much.

use std::process::Command;

use crate::by_shell;
use crate::common::Trial;
use crate::common::terminal::Terminal;

/// What is run on a terminal, what is typed once this is shown, and what has to come of it.
pub(crate) struct Scene {
    words: &'static [&'static str],
    script: &'static str,
    asked: &'static str,
    typed: &'static [u8],
    code: i32,
    shown: &'static [&'static str],
    never: &'static [&'static str],
}

const PLAIN: &str = "exec \"$0\" \"$@\"";
const RESET: &[&str] = &["store", "reset"];
const CURSOR: &str = "\u{1b}[?1049h";

const fn scene(words: &'static [&'static str], code: i32, shown: &'static [&'static str]) -> Scene {
    Scene { words, script: PLAIN, asked: "", typed: b"", code, shown, never: &["panicked"] }
}

pub(crate) const SCENES: &[Scene] = &[
    // Nobody's cluster is removed by a wrong word, by none, or by the end of the input.
    Scene { asked: "trial", typed: b"yes\n", ..scene(RESET, 1, &["not the cluster's name"]) },
    Scene { asked: "trial", typed: b"\n", ..scene(RESET, 1, &["not the cluster's name"]) },
    Scene { asked: "trial", typed: b"TRIAL\n", ..scene(RESET, 1, &["not the cluster's name"]) },
    Scene { asked: "trial", typed: b"\x04", ..scene(RESET, 1, &["not the cluster's name"]) },
    Scene { asked: "trial", typed: b"\xff\x00\n", ..scene(RESET, 1, &["the cluster's name"]) },
    Scene { asked: "trial", typed: b"trial\n", ..scene(RESET, 0, &["gone"]) },
    // What is wrong with a word is shown, and the terminal does nothing that is in it.
    Scene {
        never: &["\u{1b}[2J", "\u{202e}"],
        ..scene(&["a\u{1b}[2Jb\u{202e}"], 64, &["<U+202E>", "--help"])
    },
    Scene {
        never: &["\u{1b}]0;x"],
        ..scene(&["status", "--store", "mongo\u{1b}]0;x\u{7}"], 64, &["knows"])
    },
    Scene {
        never: &["\u{1b}[31m"],
        ..scene(&["run", "--lease", "a", "--", "x\u{1b}[31m"], 127, &["\\u{1b}[31m"])
    },
    // A terminal that can't do colours gets none.
    Scene {
        script: "TERM=dumb exec \"$0\" \"$@\"",
        never: &["\u{1b}["],
        ..scene(&["nonsense"], 64, &["nonsense", "--help"])
    },
    Scene {
        script: "NO_COLOR=1 exec \"$0\" \"$@\"",
        never: &["\u{1b}["],
        ..scene(&["leader", "nobody"], 1, &["nobody"])
    },
    Scene { script: "unset TERM; exec \"$0\" \"$@\"", ..scene(&["status"], 0, &["trial"]) },
    // The live view on terminals of no size, and with the keys of somebody who is lost.
    Scene {
        script: "stty rows 1 cols 1; exec \"$0\" \"$@\"",
        asked: CURSOR,
        typed: b"q",
        ..scene(&["top"], 0, &["\u{1b}[?1049l"])
    },
    Scene {
        script: "stty rows 0 cols 0; exec \"$0\" \"$@\"",
        asked: CURSOR,
        typed: b"q",
        ..scene(&["top"], 0, &["\u{1b}[?1049l"])
    },
    Scene {
        asked: CURSOR,
        typed: b"\x1b[A\x1b[999~/((\x7f\r\x1b:wq\r?Zpp\tq",
        ..scene(&["top"], 0, &["\u{1b}[?1049l"])
    },
    Scene { asked: CURSOR, typed: b"\x03", ..scene(&["top"], 0, &["\u{1b}[?1049l"]) },
];

/// Plays one of them, in a cluster of its own.
pub(crate) fn play(scene: &Scene) {
    let trial = Trial::with_store();
    trial.run(&["freeze"]).succeeds();
    let mut command: Command = by_shell(scene.script, scene.words);
    command.env("INCUMBENT_STORE", "sqlite:trial.db").env("INCUMBENT_CLUSTER", "trial");
    command.current_dir(trial.path());
    let mut terminal = Terminal::run(command);
    if !scene.typed.is_empty() {
        terminal.until_shown(&[scene.asked]);
        terminal.press(scene.typed);
    }
    let (code, text) = terminal.code();
    let what = format!("{:?} typed {:?}: {text:?}", scene.words, scene.typed);
    assert_eq!(code, Some(scene.code), "{what}");
    for part in scene.shown {
        assert!(text.contains(part), "{part:?} isn't shown: {what}");
    }
    for part in scene.never {
        assert!(!text.contains(part), "{part:?} is shown: {what}");
    }
}
