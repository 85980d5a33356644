//! Help that fits the terminal.

use clap::{Arg, Command};

/// The longest line that is shown on every terminal as it is.
const WIDTH: usize = 79;

/// The command with help that is easy to read on terminals of any width: what all commands have
/// comes after what is a command's own, and texts are broken by clap alone.
pub(crate) fn readable(command: Command) -> Command {
    let below = command.get_after_help().map(|text| flow(&text.to_string()));
    let last =
        |option: Arg| if option.is_global_set() { option.display_order(900) } else { option };
    let command = command.mut_args(last).mut_args(signed).mut_subcommands(readable);
    match below {
        Some(below) => command.after_help(below),
        None => command,
    }
}

/// A number below nothing is a wrong value, and not another flag: so it is told what is wrong with it.
fn signed(option: Arg) -> Arg {
    let names = option.get_value_names().unwrap_or_default();
    match names.first().map(clap::builder::Str::as_str) {
        Some("SPAN") => option.allow_hyphen_values(true),
        Some("NUMBER" | "DUTIES") => option.allow_negative_numbers(true),
        _ => option,
    }
}

/// Joins lines of prose, which clap breaks to the width of the terminal. Those that are indented,
/// and what introduces them, stay alone; a remark that makes one too long goes above it.
fn flow(text: &str) -> String {
    let mut flowing = String::new();
    let mut open = false;
    for line in text.lines() {
        let prose = !line.is_empty() && !line.starts_with(' ');
        if !flowing.is_empty() {
            flowing.push(if open && prose { ' ' } else { '\n' });
        }
        match line.split_once(" # ") {
            Some((example, remark)) if line.chars().count() > WIDTH => {
                flowing.push_str(&format!("  # {remark}\n{}", example.trim_end()));
            }
            Some(_) | None => flowing.push_str(line),
        }
        open = prose && !line.ends_with(':');
    }
    flowing
}

#[cfg(test)]
mod tests {
    use super::flow;

    #[test]
    fn prose_is_joined_and_examples_are_not() {
        let text =
            "One sentence that\ngoes on.\n\nAnother.\n\nExamples:\n  incumbent\n  incumbent x";
        let joined =
            "One sentence that goes on.\n\nAnother.\n\nExamples:\n  incumbent\n  incumbent x";
        assert_eq!(flow(text), joined);
    }

    #[test]
    fn a_remark_goes_above_an_example_that_is_too_long_with_it() {
        let short = "  incumbent x   # why not";
        assert_eq!(flow(short), short);
        let remark = "because ".repeat(9);
        let long = format!("  incumbent x   # {remark}");
        assert_eq!(flow(&long), format!("  # {remark}\n  incumbent x"));
    }
}
