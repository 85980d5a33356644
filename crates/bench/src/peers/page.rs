//! The page that shows what was found. Each measure has a place of its own there, between two comments, so
//! that measures can be repeated one by one; all else is written by people.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::section::Section;

/// Puts a measure into the page, and its chart beside the other images.
pub(crate) fn put(documents: &Path, section: &Section) -> Result<()> {
    let page = documents.join("benchmarks.md");
    let text = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let mut content = String::new();
    if let Some(chart) = &section.chart {
        let name = format!("bench-{}.svg", section.key);
        let images = documents.join("images");
        std::fs::create_dir_all(&images)?;
        std::fs::write(images.join(&name), chart)?;
        content = format!("![The table below as bars](images/{name})\n\n");
    }
    content.push_str(&section.table);
    let text = replaced(&text, section.key, &content)
        .with_context(|| format!("{} has no place for {}", page.display(), section.key))?;
    Ok(std::fs::write(&page, text)?)
}

/// The text with this in the place of that name.
fn replaced(text: &str, key: &str, content: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {key} -->\n"), format!("<!-- end of {key} -->"));
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", content.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::{KEYS, build};

    #[test]
    fn only_its_own_place_changes() {
        let text = "a\n<!-- kill -->\nold\n<!-- end of kill -->\nb\n";
        let new = replaced(text, "kill", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- kill -->\n\nnew\n\n<!-- end of kill -->\nb\n");
        assert_eq!(replaced(&new, "kill", "new\n"), Some(new.clone()));
        assert_eq!(replaced(text, "pause", "new"), None);
    }

    #[test]
    fn the_page_has_a_place_for_every_measure() {
        let text = std::fs::read_to_string(build::root().join("docs/benchmarks.md")).unwrap();
        for key in KEYS {
            assert!(replaced(&text, key, "x").is_some(), "{key}");
        }
    }
}
