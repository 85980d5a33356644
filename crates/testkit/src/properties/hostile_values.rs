use incumbent_core::store::{Key, Record};

use crate::violation::ensure;
use crate::{Context, Violation};

pub(super) const ABOUT: &str =
    "Values come back byte for byte: quotes, escapes, blanks, emoji, 64 kB";

/// All of these are JSON, and a store must not read them as such.
const VALUES: [&str; 18] = [
    "{}",
    "null",
    "\"\"",
    r#"{"quotes":"' '' \" ` ´ “ ”"}"#,
    r#"{"b":1, "a":  2 ,"b":3}"#,
    "\n{\r\n\t\"blank\" : [ 1 , 2 ]\n}\n ",
    r#"{"nul":"\u0000","bell":"\u0007","lone":"\ud800"}"#,
    r#"{"slashes":"\\ \/ / \\\\ C:\\temp"}"#,
    r#"{"number":123456789012345678901234567890.10,"other":1e400,"zero":-0.0}"#,
    r#"{"query":"'); DROP TABLE records; -- $1 ? :name @x %s {0}"}"#,
    r#"{"emoji":"🦀👩‍👩‍👧‍👦","kanji":"日本語","accents":"é e\u0301 é"}"#,
    "{\"raw\":\"\u{7f}\u{80}\u{2028}\u{fffd}\u{ffff}\u{10ffff}\u{feff}\"}",
    "\u{feff}{\"marked\":true}",
    r#"{"html":"<script>&amp;</script>","percent":"%00%27","glob":"*?[a]_"}"#,
    r#"{"version":"1","stamp":"0000000000000001.1","term":18446744073709551615}"#,
    "true",
    "[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]",
    "0",
];

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, reader) = (context.open().await?, context.open().await?);
    let most = context.capabilities().max_value;
    let mut values: Vec<String> = VALUES.map(str::to_owned).to_vec();
    values.extend([1_000, 4_096, 32_768, 65_535, 65_536].map(|size| sized(size.min(most))));
    for (place, value) in values.iter().enumerate() {
        let key = Key::new(&format!("lease/value-{place}"));
        let version = handle.create(&key, value.as_bytes()).await?;
        ensure!(same(reader.read(&key).await?, value), "{} came back changed", shown(value));
        let next = values.get(place + 1).map_or("{}", String::as_str);
        handle.swap(&key, &version, next.as_bytes()).await?;
        ensure!(same(reader.read(&key).await?, next), "{} came back changed", shown(next));
        let listed = reader.list(&key).await?.into_iter().find(|record| record.key == key);
        ensure!(same(listed, next), "{} came back changed from a prefix read", shown(next));
    }
    Ok(())
}

fn same(found: Option<Record>, value: &str) -> bool {
    found.is_some_and(|record| record.value == value.as_bytes())
}

fn sized(size: usize) -> String {
    format!("\"{}\"", "é".repeat(size / 2 - 1) + if size % 2 == 1 { "x" } else { "" })
}

fn shown(value: &str) -> String {
    let start: String = value.chars().take(60).collect();
    format!("a value of {} bytes, {start}", value.len())
}
