import { PgClient } from "@effect/sql-pg"
import { type ClassCapacities, ClassCapacity, HostClass } from "@seatrial/domain"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { leads } from "./OperatorTerms.ts"

/** The cluster's host classes. The operator copies them here for programs without access to the cluster. */
export class HostClasses extends Context.Service<
  HostClasses,
  {
    readonly list: Effect.Effect<ReadonlyArray<HostClass>>
    /** Replaces the stored set; writes only the differences. */
    readonly replaceAll: (classes: ReadonlyArray<HostClass>) => Effect.Effect<void>
    /** The capacity of each class, by class name, as the operator last observed it. */
    readonly capacities: Effect.Effect<ClassCapacities>
    /** Writes the current capacity of the classes if it has changed. */
    readonly recordCapacities: (capacities: ClassCapacities) => Effect.Effect<void>
  }
>()("seatrial/HostClasses") {
  static readonly layerSql = Layer.effect(
    HostClasses,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const list = SqlSchema.findAll({
        Request: Schema.Void,
        Result: Schema.Struct({ spec: HostClass }),
        execute: () => sql`SELECT spec FROM host_classes ORDER BY name`
      })

      const findCapacities = SqlSchema.findAll({
        Request: Schema.Void,
        Result: Schema.Struct({ name: Schema.String, capacity: ClassCapacity }),
        execute: () => sql`SELECT name, capacity FROM host_classes WHERE capacity IS NOT NULL`
      })

      return HostClasses.of({
        list: list().pipe(
          Effect.map((rows) => rows.map(({ spec }) => spec)),
          Effect.orDie,
          Effect.withSpan("HostClasses.list")
        ),
        capacities: findCapacities().pipe(
          Effect.map((rows) => new Map(rows.map(({ capacity, name }) => [name, capacity]))),
          Effect.orDie,
          Effect.withSpan("HostClasses.capacities")
        ),
        recordCapacities: Effect.fn("HostClasses.recordCapacities")(function* (capacities) {
          yield* Effect.orDie(sql`
            UPDATE host_classes h SET capacity = input.value FROM jsonb_each(${sql.json(Object.fromEntries(capacities))}) input
            WHERE ${yield* leads(sql)} AND h.name = input.key AND h.capacity IS DISTINCT FROM input.value`)
        }),
        replaceAll: Effect.fn("HostClasses.replaceAll")(function* (classes) {
          const at = new Date(yield* Clock.currentTimeMillis)
          yield* Effect.orDie(sql`
            WITH leads AS MATERIALIZED (SELECT ${yield* leads(sql)} AS yes),
            desired AS (SELECT spec ->> 'name' AS name, spec FROM jsonb_array_elements(${sql.json(classes)}) AS input (spec)),
            deleted AS (DELETE FROM host_classes WHERE (SELECT yes FROM leads) AND name NOT IN (SELECT name FROM desired))
            INSERT INTO host_classes (name, spec, updated_at) SELECT name, spec, ${at} FROM desired WHERE (SELECT yes FROM leads)
            ON CONFLICT (name) DO UPDATE SET spec = excluded.spec, updated_at = excluded.updated_at WHERE host_classes.spec <> excluded.spec`)
        })
      })
    })
  )
}
