//! A table of as many columns as there is room for.

/// A column.
pub struct Column {
    /// Its heading.
    pub head: &'static str,
    // Letters that it has at least, so that numbers that grow move nothing.
    least: usize,
    /// Which columns come before it where there is no room for all; those of rank 0 always stay.
    rank: u8,
    is_text: bool,
}

/// A column of numbers.
pub const fn number(head: &'static str, least: usize, rank: u8) -> Column {
    Column { head, least, rank, is_text: false }
}

/// A column of words.
pub const fn text(head: &'static str, rank: u8) -> Column {
    Column { head, least: 0, rank, is_text: true }
}

/// Letters that a line takes with the columns of the ranks up to this one.
pub fn width(columns: &[Column], rows: &[Vec<String>], most: u8) -> usize {
    line_width(columns, &widths(columns, rows), most)
}

/// The table. Columns of one rank are shown together, or none of them.
pub fn table(columns: &[Column], rows: &[Vec<String>], room: Option<usize>) -> String {
    let widths = widths(columns, rows);
    let mut ranks = 0..=columns.iter().map(|column| column.rank).max().unwrap_or(0);
    let is_too_wide = |rank: &u8| room.is_some_and(|room| line_width(columns, &widths, *rank) > room);
    let most = ranks.find(is_too_wide).map_or(u8::MAX, |rank| rank.saturating_sub(1));
    let mut table = line(columns, &widths, most, |at| columns[at].head);
    for row in rows {
        table += &line(columns, &widths, most, |at| &row[at]);
    }
    table
}

/// Letters that each column takes in these rows.
fn widths(columns: &[Column], rows: &[Vec<String>]) -> Vec<usize> {
    let least = columns.iter().map(|column| column.least.max(column.head.len()));
    let mut widths: Vec<usize> = least.collect();
    for row in rows {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cell.chars().count()));
    }
    widths
}

fn line_width(columns: &[Column], widths: &[usize], most: u8) -> usize {
    let chosen = columns.iter().zip(widths).filter(|(column, _)| column.rank <= most);
    chosen.map(|(_, width)| width + 1).sum::<usize>().saturating_sub(1)
}

fn line<'a>(columns: &[Column], widths: &[usize], most: u8, cell: impl Fn(usize) -> &'a str) -> String {
    let mut line = String::new();
    for (at, (column, width)) in columns.iter().zip(widths).enumerate().filter(|(_, (column, _))| column.rank <= most) {
        let text = cell(at);
        line += &if column.is_text { format!("{text:<width$} ") } else { format!("{text:>width$} ") };
    }
    line.truncate(line.trim_end().len());
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_one_rank_stay_or_go_together() {
        let columns =
            [number("PID", 7, 0), text("NAME", 0), number("IN", 5, 2), number("OUT", 5, 2), number("AGE", 3, 1)];
        let row = ["1", "échos", "22", "333", "4"].map(str::to_owned).to_vec();
        let of = |room| table(&columns, std::slice::from_ref(&row), room);
        assert_eq!(of(None), "    PID NAME     IN   OUT AGE\n      1 échos    22   333   4\n");
        assert_eq!(of(Some(29)), of(None));
        assert_eq!(of(Some(28)), "    PID NAME  AGE\n      1 échos   4\n");
        assert_eq!(of(Some(17)), of(Some(28)));
        assert_eq!(of(Some(5)), "    PID NAME\n      1 échos\n", "what always stays");
    }
}
