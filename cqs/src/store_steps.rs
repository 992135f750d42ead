//! How a twin runs the atomic steps: [`crate::CqsStore`] over its own units of work.

/// Implements [`crate::CqsStore`] for a twin that has `write` and `read`, each of which runs one closure over its unit. What a step
/// needs goes beside the closure, so that a twin whose units may have to run again can keep a copy. The unit says whose time
/// counts ([`crate::unit::Clocked`]).
macro_rules! steps_of {
    ($store:ty) => {
        impl $crate::store::CqsStore for $store {
            fn configure_queue(&self, ask: $crate::store::ConfigureAsk) -> $crate::store::Step<'_, bool> {
                self.write(ask, |unit, ask| Box::pin($crate::steps::queue::configure_queue(unit, ask)))
            }

            fn backlogs(&self) -> $crate::store::Step<'_, Vec<$crate::model::Backlog>> {
                self.read((), |unit, ()| Box::pin($crate::steps::overview::backlogs(unit)))
            }

            fn dequeue(
                &self,
                ask: $crate::store::DequeueAsk,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, $crate::store::Dequeued> {
                self.write(ask, move |unit, ask| {
                    Box::pin(async move {
                        let at = $crate::unit::Clocked::time(unit, now);
                        let mut found = $crate::steps::dequeue::dequeue(unit, &ask, at).await?;
                        // Back into the time of the caller, who sleeps by it.
                        found.look_again_at = found.look_again_at.map(|again| now.plus_ms(again.ms_since(at)));
                        Ok(found)
                    })
                })
            }

            fn further(
                &self,
                ask: $crate::store::FurtherAsk,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, $crate::store::Further> {
                self.write(ask, move |unit, ask| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::further::further(unit, ask, now))
                })
            }

            fn complete(
                &self,
                ask: $crate::store::CompleteAsk,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, $crate::store::Completed> {
                self.write(ask, move |unit, ask| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::complete::complete(unit, ask, now))
                })
            }

            fn extend_lease(
                &self,
                lease: domain::LeaseRef,
                expires_at: domain::Timestamp,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, ()> {
                self.write(lease, move |unit, lease| {
                    Box::pin(async move {
                        let at = $crate::unit::Clocked::time(unit, now);
                        let expires_at = at.plus_ms(expires_at.ms_since(now));
                        $crate::steps::lease::extend_lease(unit, &lease, (expires_at, at)).await
                    })
                })
            }

            fn lease_outlived(
                &self,
                lease: domain::LeaseRef,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, $crate::announce::Woken> {
                self.write(lease, move |unit, lease| {
                    Box::pin(async move {
                        let now = $crate::unit::Clocked::time(unit, now);
                        $crate::steps::lease::outlived(unit, &lease, now).await
                    })
                })
            }

            fn re_enqueue(
                &self,
                ask: $crate::store::SplitAsk,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, $crate::store::Splitted> {
                self.write(ask, move |unit, ask| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::re_enqueue::re_enqueue(unit, ask, now))
                })
            }

            fn self_enqueue(
                &self,
                ask: $crate::store::InjectAsk,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, $crate::store::Injected> {
                self.write(ask, move |unit, ask| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::self_enqueue::self_enqueue(unit, ask, now))
                })
            }

            fn operation(
                &self,
                tenant: domain::TenantId,
                tracking_id: domain::TrackingId,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, Option<$crate::model::OperationReport>> {
                self.read((tenant, tracking_id), move |unit, (tenant, tracking_id)| {
                    Box::pin(async move {
                        let now = $crate::unit::Clocked::time(unit, now);
                        $crate::steps::operation::operation(unit, (&tenant, &tracking_id), now).await
                    })
                })
            }

            fn operations_named(
                &self,
                tenant: domain::TenantId,
                names: Vec<domain::TrackingId>,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, Vec<$crate::model::OperationReport>> {
                self.read((tenant, names), move |unit, (tenant, names)| {
                    Box::pin(async move {
                        let now = $crate::unit::Clocked::time(unit, now);
                        $crate::steps::operation::named(unit, (&tenant, &names), now).await
                    })
                })
            }

            fn operations(
                &self,
                tenants: Vec<domain::TenantId>,
                (before, limit): (i64, usize),
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, Vec<$crate::model::OperationReport>> {
                self.read(tenants, move |unit, tenants| {
                    Box::pin(async move {
                        let now = $crate::unit::Clocked::time(unit, now);
                        $crate::steps::operation::operations(unit, &tenants, (before, limit, now)).await
                    })
                })
            }

            fn operations_unfinished(
                &self,
                tenants: Vec<domain::TenantId>,
                (before, limit): (i64, usize),
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, Vec<$crate::model::OperationReport>> {
                self.read(tenants, move |unit, tenants| {
                    Box::pin(async move {
                        let now = $crate::unit::Clocked::time(unit, now);
                        $crate::steps::operation::unfinished(unit, &tenants, (before, limit, now)).await
                    })
                })
            }

            fn control(
                &self,
                ask: $crate::model::ControlAsk,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, $crate::store::Controlled> {
                self.write(ask, move |unit, ask| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::control::control(unit, ask, now))
                })
            }

            fn set_brake(
                &self,
                ask: $crate::store::BrakeAsk,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, (Option<$crate::model::Act>, $crate::announce::Woken)> {
                self.write(ask, move |unit, ask| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::brake::set_brake(unit, ask, now))
                })
            }

            fn overview(&self) -> $crate::store::Step<'_, $crate::model::Overview> {
                self.read((), |unit, ()| Box::pin($crate::steps::overview::overview(unit)))
            }

            fn brake(&self) -> $crate::store::Step<'_, Option<$crate::model::Act>> {
                self.read((), |unit, ()| Box::pin($crate::steps::brake::brake(unit)))
            }

            fn clear(&self, now: domain::Timestamp) -> $crate::store::Step<'_, bool> {
                self.write((), move |unit, ()| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::clear::clear(unit, now))
                })
            }

            fn units_begun(&self) -> u64 {
                Self::units(self)
            }

            fn append_audit(&self, rows: Vec<$crate::model::AuditRow>) -> $crate::store::Step<'_, ()> {
                self.write(rows, |unit, rows| {
                    Box::pin(async move { $crate::steps::audit::append_audit(unit, &rows).await })
                })
            }

            fn audit(
                &self,
                filter: $crate::unit::AuditFilter,
            ) -> $crate::store::Step<'_, Vec<$crate::model::SealedRow>> {
                self.read(filter, |unit, filter| {
                    Box::pin(async move { $crate::steps::audit::audit(unit, &filter).await })
                })
            }

            fn follow_audit(
                &self,
                ask: $crate::store::FollowAsk,
            ) -> $crate::store::Step<'_, Vec<$crate::model::SealedRow>> {
                self.write(ask, |unit, ask| Box::pin(async move { $crate::steps::audit::follow(unit, &ask).await }))
            }

            fn maintain(&self, now: domain::Timestamp) -> $crate::store::Step<'_, ($crate::announce::Woken, bool)> {
                self.write((), move |unit, ()| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::upkeep::maintain(unit, now))
                })
            }

            fn end_all_leases(&self, now: domain::Timestamp) -> $crate::store::Step<'_, $crate::announce::Woken> {
                Box::pin(async move {
                    let mut woken = $crate::announce::Woken::default();
                    loop {
                        let (some, more) = self
                            .write((), move |unit, ()| {
                                let now = $crate::unit::Clocked::time(unit, now);
                                Box::pin($crate::steps::upkeep::end_leases(unit, now))
                            })
                            .await?;
                        woken.extend(some);
                        if !more {
                            return Ok(woken);
                        }
                    }
                })
            }
        }
    };
}
pub(crate) use steps_of;
