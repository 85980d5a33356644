//! Bars as SVG, on a logarithmic scale: what is compared lies between a millisecond and half a minute.

use std::fmt::Write as _;

/// One bar.
pub(crate) struct Bar {
    pub(crate) label: String,
    /// The median, or nothing where there was none.
    pub(crate) value: Option<f64>,
    /// How far the worst went.
    pub(crate) most: Option<f64>,
    /// What stands behind it.
    pub(crate) text: String,
    pub(crate) ours: bool,
}

const ROW: f64 = 24.0;
const LEFT: f64 = 290.0;
const WIDTH: f64 = 860.0;
const RIGHT: f64 = 150.0;

/// A chart with this title.
pub(crate) fn svg(title: &str, bars: &[Bar]) -> String {
    let values = bars.iter().flat_map(|bar| [bar.value, bar.most]).flatten();
    let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min).clamp(1e-3, 1e6);
    let high = values.iter().copied().fold(low * 10.0, f64::max);
    let (low, high) = (low.log10().floor(), high.log10().ceil());
    let span = WIDTH - LEFT - RIGHT;
    let place = |value: f64| {
        let share = (value.max(1e-9).log10() - low) / (high - low).max(1.0);
        LEFT + span * share.clamp(0.0, 1.0)
    };
    let height = 62.0 + ROW * bars.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"10\" y=\"20\" font-weight=\"bold\" fill=\"#222222\">{}</text>\n",
        escaped(title)
    );
    let mut power = low;
    while power <= high {
        let x = place(10f64.powf(power));
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"30\" y2=\"{:.1}\" stroke=\"#dddddd\"/>",
            height - 26.0
        );
        power += 1.0;
    }
    for (at, bar) in bars.iter().enumerate() {
        let y = 34.0 + ROW * at as f64;
        row(&mut text, bar, y, &place);
    }
    let _ = writeln!(
        text,
        "<text x=\"{LEFT}\" y=\"{:.1}\" font-size=\"11\" fill=\"#777777\">each grey line is ten times the one \
         before it</text>",
        height - 10.0
    );
    text.push_str("</svg>\n");
    text
}

fn row(text: &mut String, bar: &Bar, y: f64, place: &impl Fn(f64) -> f64) {
    let (label, behind) = (escaped(&bar.label), escaped(&bar.text));
    let color = if bar.ours { "#1a7f5a" } else { "#8a94a6" };
    let middle = y + 14.0;
    let _ = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\" fill=\"#222222\">{label}</text>",
        LEFT - 8.0
    );
    let mut end = LEFT;
    if let Some(value) = bar.value {
        end = place(value).max(LEFT + 2.0);
        let width = end - LEFT;
        let _ = writeln!(
            text,
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"16\" fill=\"{color}\"/>",
            y + 2.0
        );
    }
    if let Some(most) = bar.most {
        let to = place(most).max(end);
        let line = y + 10.0;
        let _ = writeln!(
            text,
            "<line x1=\"{end:.1}\" x2=\"{to:.1}\" y1=\"{line:.1}\" y2=\"{line:.1}\" stroke=\"{color}\" \
             stroke-width=\"2\"/>"
        );
        end = to;
    }
    let _ = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"{middle:.1}\" fill=\"#444444\" stroke=\"#ffffff\" stroke-width=\"4\" \
         paint-order=\"stroke\">{behind}</text>",
        end + 6.0
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_is_longer_and_text_cannot_break_it() {
        let bar = |value, ours| Bar {
            label: "a < b".to_owned(),
            value: Some(value),
            most: Some(value * 2.0),
            text: "& more".to_owned(),
            ours,
        };
        let text = svg("one", &[bar(3.0, true), bar(9000.0, false)]);
        let widths: Vec<f64> = text
            .lines()
            .filter(|line| line.contains("height=\"16\""))
            .filter_map(|line| line.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert!(matches!(widths.as_slice(), [short, long] if short < long), "{widths:?}");
        assert!(text.contains("a &lt; b") && text.contains("&amp; more"));
        assert!(svg("none", &[]).ends_with("</svg>\n"));
    }
}
