//! What statements see of their session besides its tables: names, settings, who it is. Made once and kept as long as
//! nothing of it changes, so that a statement that needs little costs little.

use super::Session;
use super::catalog_names::SessionNames;
use crate::settings::Effective;
use crate::syntax::Isolation;
use crate::system::SystemContext;
use basalt_engine::{Catalog, Database};
use basalt_expr::EvalContext;
use basalt_types::Datum;
use std::sync::Arc;

pub(crate) struct Surroundings {
    catalog: Arc<Catalog>,
    /// Each change of a setting makes another.
    settings: Arc<Effective>,
    database: Arc<Database>,
    identity: u64,
    read_only: bool,
    isolation: Isolation,
    pub names: Arc<SessionNames>,
    /// Without prepared statements and cursors, which only system tables ask for.
    pub system: Arc<SystemContext>,
    /// Without parameters, at no moment.
    pub eval: EvalContext,
    /// All that plans may depend on beside the catalog: equal words, equal plans.
    pub words: Arc<str>,
}

/// What a session keeps of what was around it.
#[derive(Default)]
pub(crate) struct Around {
    known: Option<Arc<Surroundings>>,
    /// Of these, with the parameters and moments of the last statement: the next one takes it over.
    eval: Option<Arc<EvalContext>>,
}

/// More parameters, or longer ones together, are not kept until the next statement.
const KEPT_PARAMS_MAX: usize = 64;
const KEPT_BYTES_MAX: usize = 1 << 10;

impl Session {
    /// Those of now, with the names of a catalog.
    pub(crate) fn surroundings(&self, catalog: &Arc<Catalog>) -> Arc<Surroundings> {
        self.around(&mut self.around.lock(), catalog).clone()
    }

    fn around<'k>(&self, kept: &'k mut Around, catalog: &Arc<Catalog>) -> &'k Arc<Surroundings> {
        if !kept.known.as_ref().is_some_and(|known| known.are_of(self, catalog)) {
            let words = kept.known.take().map(|before| before.words.clone());
            *kept = Around { known: Some(Arc::new(self.look_around(catalog, words))), eval: None };
        }
        kept.known.as_ref().expect("just made")
    }

    /// Parameters, clock and formats of the current statement.
    pub(crate) fn eval_context(&self, params: Vec<Datum>, catalog: &Arc<Catalog>) -> Arc<EvalContext> {
        let (now_micros, statement_micros) = self.moments();
        let mut kept = self.around.lock();
        let around = self.around(&mut kept, catalog).clone();
        let bytes = |value: &Datum| if let Datum::Bytes(bytes) = value { bytes.len() } else { 0 };
        if params.len() > KEPT_PARAMS_MAX || params.iter().map(bytes).sum::<usize>() > KEPT_BYTES_MAX {
            return Arc::new(EvalContext { params, now_micros, statement_micros, ..around.eval.clone() });
        }
        // Whoever works on with the last one, on another thread, keeps it.
        match kept.eval.as_mut().and_then(Arc::get_mut) {
            Some(eval) => {
                (eval.params, eval.now_micros, eval.statement_micros) = (params, now_micros, statement_micros);
                kept.eval.clone().expect("just changed")
            }
            None => {
                let eval = Arc::new(EvalContext { params, now_micros, statement_micros, ..around.eval.clone() });
                kept.eval.insert(eval).clone()
            }
        }
    }

    /// `before`: the words of what was around until now.
    fn look_around(&self, catalog: &Arc<Catalog>, before: Option<Arc<str>>) -> Surroundings {
        let settings = self.settings.effective();
        let (clock, random) = (self.db.os().clock.clone(), self.db.os().random.clone());
        let names = Arc::new(SessionNames {
            catalog: catalog.clone(),
            database: self.database.id,
            search_path: self.lookup_path(catalog),
            registry: self.db.registry().clone(),
            domains: Default::default(),
        });
        let system = Arc::new(SystemContext {
            catalog: catalog.clone(),
            engine: self.db.engine().clone(),
            db: self.db.clone(),
            user: self.user.clone(),
            session_user: self.session_user.clone(),
            login: self.login.clone(),
            database: self.database.name.clone(),
            search_path: self.search_path(catalog),
            lookup_path: names.search_path.clone(),
            backend_pid: self.pid,
            client_addr: self.client_addr,
            settings: self.settings.clone(),
            prepared: Vec::new(),
            cursors: Vec::new(),
            asked: self.asked.clone(),
            notices: self.told.clone(),
            failed: self.failed.clone(),
            sequences: self.sequences.clone(),
            outgoing: self.outgoing.clone(),
            read_only: self.is_read_only(),
            isolation: self.isolation(),
        });
        let eval = EvalContext {
            params: Vec::new(),
            timezone: settings.timezone,
            now_micros: 0,
            statement_micros: 0,
            clock: Arc::new(move || clock.unix_micros()),
            random: Arc::new(move |bytes| random.fill(bytes)),
            generator: self.generator.clone(),
            date_format: settings.date_format,
            date_order: settings.date_order,
            interval_style: settings.interval_style,
            bytea_output: settings.bytea_output,
            extra_float_digits: settings.extra_float_digits,
            names: Some(names.clone()),
            system: Some(system.clone()),
            literals: None,
            literal_style: None,
            asked_moment: Some(self.asked_moment.clone()),
        };
        Surroundings {
            catalog: catalog.clone(),
            settings: settings.clone(),
            database: self.database.clone(),
            identity: self.identity,
            read_only: self.is_read_only(),
            isolation: self.isolation(),
            words: self.in_words(&names, before),
            names,
            system,
            eval,
        }
    }

    fn in_words(&self, names: &SessionNames, before: Option<Arc<str>>) -> Arc<str> {
        let identity = (&self.user, &self.session_user, self.superuser, self.database.id);
        let words = format!("{identity:?} {:?} {:?}", names.search_path, self.settings.effective());
        before.filter(|before| **before == *words).unwrap_or_else(|| words.into())
    }
}

impl Surroundings {
    pub fn catalog_version(&self) -> u64 {
        self.catalog.version
    }

    fn are_of(&self, session: &Session, catalog: &Arc<Catalog>) -> bool {
        Arc::ptr_eq(&self.catalog, catalog)
            && Arc::ptr_eq(&self.settings, session.settings.effective())
            && Arc::ptr_eq(&self.database, &session.database)
            && self.identity == session.identity
            && self.read_only == session.is_read_only()
            && self.isolation == session.isolation()
    }
}
