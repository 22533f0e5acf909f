//! Things by number, where a number that is used again has another generation.

/// What names an entry of a [`Slab`]: a place, and which use of the place.
pub trait Id: Copy {
    /// How many places there can be.
    const PLACES: usize;
    /// The generation of a place that was never used.
    const FIRST: u32;
    /// The last generation, which the first one follows.
    const LAST: u32;

    /// Puts an id together.
    fn new(place: u32, generation: u32) -> Self;
    /// Which place.
    fn place(self) -> u32;
    /// Which use of it.
    fn generation(self) -> u32;
}

/// 20 bits of place, 12 of generation. No id is zero.
impl Id for u32 {
    const PLACES: usize = 1 << 20;
    const FIRST: u32 = 1;
    const LAST: u32 = (1 << 12) - 1;

    #[inline]
    fn new(place: u32, generation: u32) -> u32 {
        generation << 20 | place
    }

    #[inline]
    fn place(self) -> u32 {
        self & ((1 << 20) - 1)
    }

    #[inline]
    fn generation(self) -> u32 {
        self >> 20
    }
}

/// Half of it place, half generation. No id is zero.
impl Id for u64 {
    const PLACES: usize = 1 << 32;
    const FIRST: u32 = 1;
    const LAST: u32 = u32::MAX;

    #[inline]
    fn new(place: u32, generation: u32) -> u64 {
        u64::from(generation) << 32 | u64::from(place)
    }

    #[inline]
    fn place(self) -> u32 {
        self as u32
    }

    #[inline]
    fn generation(self) -> u32 {
        (self >> 32) as u32
    }
}

/// Entries named by ids. An id that was given back names nothing, also when its place is used again.
#[derive(Debug)]
pub struct Slab<T, I = u32> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    limit: usize,
    ids: std::marker::PhantomData<fn() -> I>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T, I: Id> Default for Slab<T, I> {
    fn default() -> Self {
        Slab::new(I::PLACES)
    }
}

impl<T, I: Id> Slab<T, I> {
    /// For at most `limit` entries.
    pub fn new(limit: usize) -> Slab<T, I> {
        let ids = std::marker::PhantomData;
        Slab { entries: Vec::new(), free: Vec::new(), limit: limit.min(I::PLACES), ids }
    }

    /// Adds an entry that knows its id; `None` if the slab is full.
    pub fn insert_with(&mut self, make: impl FnOnce(I) -> T) -> Option<I> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.entries.len() < self.limit => {
                self.entries.push(Entry { generation: I::FIRST, value: None });
                self.entries.len() as u32 - 1
            }
            None => return None,
        };
        let entry = &mut self.entries[place as usize];
        let id = I::new(place, entry.generation);
        entry.value = Some(make(id));
        Some(id)
    }

    /// Adds an entry.
    pub fn insert(&mut self, value: T) -> Option<I> {
        self.insert_with(|_| value)
    }

    /// The entry of an id.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        let entry = self.entries.get(id.place() as usize)?;
        if entry.generation == id.generation() { entry.value.as_ref() } else { None }
    }

    /// The entry of an id, to change it.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        let entry = self.entries.get_mut(id.place() as usize)?;
        if entry.generation == id.generation() { entry.value.as_mut() } else { None }
    }

    /// The entry that has a place at present, whatever its generation.
    #[inline]
    pub fn at(&self, place: u32) -> Option<&T> {
        self.entries.get(place as usize)?.value.as_ref()
    }

    /// Takes an entry out.
    pub fn remove(&mut self, id: I) -> Option<T> {
        self.get(id)?;
        self.remove_before(id.place(), if id.generation() < I::LAST { id.generation() + 1 } else { I::FIRST })
    }

    /// Takes out the entry that has a place. The next one there has the generation `next`.
    pub fn remove_before(&mut self, place: u32, next: u32) -> Option<T> {
        let entry = self.entries.get_mut(place as usize)?;
        let value = entry.value.take()?;
        entry.generation = next;
        self.free.push(place);
        Some(value)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All entries, with their ids.
    pub fn ids(&self) -> impl Iterator<Item = (I, &T)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(place, entry)| Some((I::new(place as u32, entry.generation), entry.value.as_ref()?)))
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|entry| entry.value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_id_names_nothing() {
        old_ids_name_nothing(Slab::<char, u32>::new(2));
        old_ids_name_nothing(Slab::<char, u64>::new(2));
    }

    fn old_ids_name_nothing<I: Id + PartialEq + std::fmt::Debug>(mut slab: Slab<char, I>) {
        let first = slab.insert('a').unwrap();
        assert_eq!(slab.get(first), Some(&'a'));
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b').unwrap();
        assert_ne!(first, second);
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!((slab.get(second), slab.at(second.place())), (Some(&'b'), Some(&'b')));
        let third = slab.insert('c').unwrap();
        assert_eq!((slab.insert('d'), slab.len()), (None, 2));
        assert_eq!(slab.ids().collect::<Vec<_>>(), [(second, &'b'), (third, &'c')]);
    }

    #[test]
    fn no_short_id_is_zero() {
        let mut slab = Slab::<(), u32>::new(1);
        for _ in 0..10_000 {
            let id = slab.insert(()).unwrap();
            assert_ne!(id, 0);
            assert!(slab.get(0).is_none());
            slab.remove(id).unwrap();
        }
    }

    #[test]
    fn the_owner_of_an_entry_says_what_follows_it() {
        let mut slab = Slab::<char, u64>::default();
        let first = slab.insert('a').unwrap();
        assert_eq!(slab.remove_before(first.place(), 7), Some('a'));
        assert_eq!((slab.remove_before(first.place(), 9), slab.at(first.place())), (None, None));
        assert_eq!(slab.insert('b').unwrap(), <u64 as Id>::new(first.place(), 7));
    }
}
