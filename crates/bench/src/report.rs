//! Results, as a table or as JSON.

use serde_json::{Map, Value};

/// What was measured.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

struct Row {
    /// Its name in JSON.
    key: &'static str,
    what: String,
    value: f64,
    unit: &'static str,
    goal: &'static str,
}

impl Report {
    /// Adds a result without a goal.
    pub(crate) fn add(&mut self, key: &'static str, what: &str, value: f64, unit: &'static str) {
        self.add_with_goal(key, what, value, unit, "");
    }

    /// Adds a result, and what it should be.
    pub(crate) fn add_with_goal(
        &mut self,
        key: &'static str,
        what: &str,
        value: f64,
        unit: &'static str,
        goal: &'static str,
    ) {
        self.rows.push(Row { key, what: what.to_owned(), value, unit, goal });
    }

    /// The results as a table of a page.
    #[cfg(feature = "all-stores")]
    pub(crate) fn markdown(&self) -> String {
        let mut text = "| what | result | goal |\n| --- | --- | --- |\n".to_owned();
        for Row { what, value, unit, goal, .. } in &self.rows {
            let digits = if value.fract() == 0.0 { 0 } else { 2 };
            text.push_str(&format!("| {} | {value:.digits$} {unit} | {goal} |\n", what.trim()));
        }
        text
    }

    pub(crate) fn print(&self, json: bool) {
        if json {
            let values = self.rows.iter().map(|row| {
                let mut entry = Map::new();
                entry.insert("value".to_owned(), Value::from(row.value));
                entry.insert("unit".to_owned(), Value::from(row.unit));
                if !row.goal.is_empty() {
                    entry.insert("goal".to_owned(), Value::from(row.goal));
                }
                (row.key.to_owned(), Value::Object(entry))
            });
            println!("{}", Value::Object(values.collect()));
            return;
        }
        println!("{:<56} {:>10} {:<8} goal", "what", "result", "");
        for Row { what, value, unit, goal, .. } in &self.rows {
            let digits = if value.fract() == 0.0 { 0 } else { 2 };
            println!("{what:<56} {value:>10.digits$} {unit:<8} {goal}");
        }
    }
}
