//! A description as a picture: SVG, filters in columns from left to right.

use std::fmt::Write;

use super::{Graph, Place};
use crate::schedule::Schedule;

const WIDTH: usize = 150;
const HEIGHT: usize = 56;
const GAP_X: usize = 110;
const GAP_Y: usize = 34;
const EDGE: usize = 20;

/// Draws a group. One that is wrong is drawn as far as it goes.
pub fn draw(graph: &Graph) -> String {
    let columns = columns(graph);
    let place = |index: usize| {
        let row = columns[..index].iter().filter(|column| **column == columns[index]).count();
        (EDGE + columns[index] * (WIDTH + GAP_X), EDGE + row * (HEIGHT + GAP_Y))
    };
    let places: Vec<(usize, usize)> = (0..graph.filters.len()).map(place).collect();
    let right = places.iter().map(|place| place.0).max().unwrap_or(0) + WIDTH + EDGE;
    let bottom = places.iter().map(|place| place.1).max().unwrap_or(0) + HEIGHT + EDGE + 6;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {right} {bottom}\" width=\"{right}\" height=\"{bottom}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{}</title>\n<defs><marker id=\"arrow\" markerWidth=\"8\" \
         markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
        escaped(&graph.name)
    );
    for stream in &graph.streams {
        let ends = (graph.filter_index(&stream.from.0), graph.filter_index(&stream.to.0));
        let (Some(from), Some(to)) = ends else { continue };
        let ((x1, y1), (x2, y2)) = (places[from], places[to]);
        let (x1, y1, y2) = (x1 + WIDTH, y1 + HEIGHT / 2, y2 + HEIGHT / 2);
        let dealt = match stream.schedule {
            Schedule::RoundRobin => "round robin",
            Schedule::Demand => "demand",
            Schedule::Keyed => "keyed",
        };
        let ordered = if stream.ordered { ", ordered" } else { "" };
        let _ = writeln!(
            out,
            "<path d=\"M{x1} {y1}L{x2} {y2}\" stroke=\"black\" fill=\"none\" marker-end=\"url(#arrow)\"/>"
        );
        let (x, y) = ((x1 + x2) / 2, (y1 + y2) / 2);
        let _ = writeln!(out, "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{} B</text>", y - 5, stream.buffer);
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\">{dealt}{ordered}</text>",
            y + 12
        );
    }
    for (filter, (x, y)) in graph.filters.iter().zip(&places) {
        // A filter with copies looks like a stack of cards.
        for card in (0..filter.copies.clamp(1, 3)).rev() {
            let _ = writeln!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" fill=\"#eef3fb\" stroke=\"black\"/>",
                x + 3 * card,
                y + 3 * card
            );
        }
        let copies = if filter.copies > 1 { format!(" x {}", filter.copies) } else { String::new() };
        let place = match &filter.place {
            Place::Thread => "thread".to_owned(),
            Place::Process => "own process".to_owned(),
            Place::Shared(name) => format!("process {name}"),
        };
        let host = filter.host.as_ref().map_or_else(String::new, |host| format!(" on {host}"));
        let mut text = |down: usize, size: usize, text: String| {
            let (x, y) = (x + WIDTH / 2, y + down);
            let _ = writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"{size}\">{}</text>",
                escaped(&text)
            );
        };
        text(18, 13, format!("{}{copies}", filter.name));
        text(33, 11, filter.kind.clone());
        text(48, 10, format!("{place}{host}"));
    }
    out.push_str("</svg>\n");
    out
}

/// The column of each filter: one behind the last of those that lead to it.
fn columns(graph: &Graph) -> Vec<usize> {
    let mut columns = vec![0; graph.filters.len()];
    // In a circle this would go on for ever.
    for _ in 0..graph.filters.len() {
        for stream in &graph.streams {
            if let (Some(from), Some(to)) = (graph.filter_index(&stream.from.0), graph.filter_index(&stream.to.0)) {
                columns[to] = columns[to].max(columns[from] + 1).min(graph.filters.len());
            }
        }
    }
    columns
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
