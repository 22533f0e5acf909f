//! Where the records of a run go: to the output, if they were asked for as JSON, and into what is kept of the run.

use super::record::Record;

/// Takes the records of a run.
pub struct Sink {
    is_json: bool,
    records: Vec<Record>,
}

impl Sink {
    /// An empty one, which prints what it takes if `is_json`.
    pub fn new(is_json: bool) -> Sink {
        Sink { is_json, records: Vec::new() }
    }

    /// Whether records are printed instead of tables.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// Takes records.
    pub fn take(&mut self, records: impl IntoIterator<Item = Record>) {
        for record in records {
            if self.is_json {
                println!("{}", record.json());
            }
            self.records.push(record);
        }
    }

    /// Keeps records that were shown in another form.
    pub fn keep(&mut self, records: Vec<Record>) {
        self.records.extend(records);
    }

    /// All that were taken, in order.
    pub fn into_records(self) -> Vec<Record> {
        self.records
    }
}
