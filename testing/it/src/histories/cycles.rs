//! A directed graph, its strongly connected components (Tarjan, "Depth-First Search and Linear Graph Algorithms",
//! SIAM J. Comput. 1972, without recursion), and short ways through one of them.

use std::collections::{HashMap, VecDeque};

/// An edge's label where it stands for no dependency: it costs a way nothing.
pub(super) const PLAIN: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    pub from: u32,
    pub to: u32,
    pub label: u32,
}

pub(super) struct Graph {
    /// By node: what leaves it.
    edges: Vec<Vec<Edge>>,
}

impl Graph {
    pub fn new(nodes: usize) -> Graph {
        Graph { edges: vec![Vec::new(); nodes] }
    }

    pub fn add(&mut self, from: u32, to: u32, label: u32) {
        self.edges[from as usize].push(Edge { from, to, label });
    }

    /// By node: the number of its component, if that has more than one node.
    pub fn components(&self) -> Vec<Option<u32>> {
        let mut search = Search {
            graph: self,
            found: vec![UNSEEN; self.edges.len()],
            low: vec![0; self.edges.len()],
            open: Vec::new(),
            is_open: vec![false; self.edges.len()],
            component: vec![None; self.edges.len()],
            clock: 0,
            components: 0,
        };
        (0..self.edges.len() as u32).for_each(|node| search.visit(node));
        search.component
    }

    /// The edges from `start` to `goal` with the fewest labels that do not leave the component.
    pub fn way(&self, start: u32, goal: u32, component: &[Option<u32>]) -> Option<Vec<Edge>> {
        let inside = component[start as usize];
        let mut cost: HashMap<u32, (u32, Option<Edge>)> = HashMap::from([(start, (0, None))]);
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((node, so_far)) = queue.pop_front() {
            if cost[&node].0 < so_far {
                continue;
            }
            if node == goal {
                return Some(back(goal, &cost));
            }
            for edge in self.edges[node as usize].iter().filter(|edge| component[edge.to as usize] == inside) {
                let then = so_far + u32::from(edge.label != PLAIN);
                if cost.get(&edge.to).is_none_or(|(known, _)| then < *known) {
                    cost.insert(edge.to, (then, Some(*edge)));
                    if edge.label == PLAIN {
                        queue.push_front((edge.to, then))
                    } else {
                        queue.push_back((edge.to, then))
                    }
                }
            }
        }
        None
    }
}

fn back(goal: u32, cost: &HashMap<u32, (u32, Option<Edge>)>) -> Vec<Edge> {
    let mut way = Vec::new();
    let mut at = goal;
    while let Some(edge) = cost[&at].1 {
        way.push(edge);
        at = edge.from;
    }
    way.reverse();
    way
}

const UNSEEN: u32 = u32::MAX;

struct Search<'a> {
    graph: &'a Graph,
    /// When a node was found, and the earliest node that it reaches.
    found: Vec<u32>,
    low: Vec<u32>,
    open: Vec<u32>,
    is_open: Vec<bool>,
    component: Vec<Option<u32>>,
    clock: u32,
    components: u32,
}

impl Search<'_> {
    fn visit(&mut self, root: u32) {
        if self.found[root as usize] != UNSEEN {
            return;
        }
        self.enter(root);
        let mut path = vec![(root, 0)];
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            if let Some(edge) = self.graph.edges[node as usize].get(*next) {
                *next += 1;
                let to = edge.to as usize;
                if self.found[to] == UNSEEN {
                    self.enter(edge.to);
                    path.push((edge.to, 0));
                } else if self.is_open[to] {
                    self.low[node as usize] = self.low[node as usize].min(self.found[to]);
                }
            } else {
                path.pop();
                if let Some((parent, _)) = path.last() {
                    let parent = *parent as usize;
                    self.low[parent] = self.low[parent].min(self.low[node as usize]);
                }
                if self.low[node as usize] == self.found[node as usize] {
                    self.close(node);
                }
            }
        }
    }

    fn enter(&mut self, node: u32) {
        self.found[node as usize] = self.clock;
        self.low[node as usize] = self.clock;
        self.clock += 1;
        self.open.push(node);
        self.is_open[node as usize] = true;
    }

    /// What lies above the first node of a component belongs to it.
    fn close(&mut self, first: u32) {
        let from = self.open.iter().rposition(|node| *node == first).unwrap_or(0);
        let members = self.open.split_off(from);
        self.components += 1;
        for member in &members {
            self.is_open[*member as usize] = false;
            self.component[*member as usize] = (members.len() > 1).then_some(self.components);
        }
    }
}
