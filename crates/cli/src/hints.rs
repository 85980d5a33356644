//! Whether and where this node takes hints from others.

use clap::ArgMatches;
use incumbent::{HintKey, HintSettings};

use crate::arguments::Arguments;
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::setting::Origin;

/// What the flags, the environment and the configuration file say.
pub(crate) fn settings(
    arguments: &Arguments,
    matches: &ArgMatches,
    config: &Config,
) -> Outcome<HintSettings> {
    if arguments.command.gives_no_hints() {
        return Ok(HintSettings::default());
    }
    let file = arguments.hint_key_file.as_ref().filter(|file| !file.is_empty());
    let given = Origin::of(matches, "hint_key_file", "--hint-key-file", "INCUMBENT_HINT_KEY_FILE");
    let file = file.map(|file| (file.clone(), given));
    let filed = config.hint_key_file.as_ref();
    let filed = filed.map(|entry| (entry.value.clone().into(), Origin::line(config, entry)));
    let key = match file.or(filed) {
        Some((file, origin)) => Some(
            HintKey::from_file(&file)
                .map_err(|error| Failure::usage(format!("{origin}: {error}")))?,
        ),
        None => None,
    };
    let place = arguments.hints.as_ref().filter(|place| !place.is_empty());
    let given = Origin::of(matches, "hints", "--hints", "INCUMBENT_HINTS");
    let place = place.map(|place| (place.clone(), given));
    let filed = config.hints.as_ref();
    let filed = filed.map(|entry| (entry.value.clone(), Origin::line(config, entry)));
    match place.or(filed) {
        Some((place, origin)) => HintSettings::parse(&place, key)
            .map_err(|error| Failure::usage(format!("{origin}: {error}"))),
        None => {
            Ok(key.map_or_else(HintSettings::default, |key| HintSettings::default().with_key(key)))
        }
    }
}
