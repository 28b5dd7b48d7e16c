import { HostClassName } from "@seatrial/domain"
import { HostClasses, Reservations } from "@seatrial/store"
import { Console, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { jsonFlag as json, orgFlag as org, organization } from "./organization.ts"

const hostClass = Flag.String("host-class").pipe(Flag.withDescription("Name of the host class"), Flag.withSchema(HostClassName))
const gpus = Flag.Int("gpus").pipe(
  Flag.withDescription("Number of reserved GPUs; replaces the previous number"),
  Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 })))
)

/** A warning, not an error, because the host class can be created later. */
export const unknownClass = (hostClass: string, names: ReadonlyArray<string>): string =>
  `There is no host class ${hostClass}${names.length === 0 ? ", and no other host class exists" : `; existing classes: ${names.join(", ")}`}. The reservation takes effect when the host class exists.`

export const reservationsCommand = Command.make("reservations").pipe(
  Command.withDescription("GPUs that are reserved for an organization. Only its runs use them."),
  Command.withSubcommands([
    Command.make(
      "grant",
      { org, hostClass, gpus, json },
      Effect.fn(function* ({ gpus, hostClass, json, org }) {
        const reservations = yield* Reservations
        const { id: orgId } = yield* organization(org)
        const before = yield* reservations.grant({ orgId, hostClass, gpus })
        const names = (yield* (yield* HostClasses).list).map(({ name }) => name)
        if (!names.includes(hostClass)) yield* Console.error(unknownClass(hostClass, names))
        yield* printRecord(json, { org, host_class: hostClass, gpus, before: Option.getOrElse(before, () => 0) })
      })
    ).pipe(Command.withDescription("Reserves GPUs of a host class for an organization. The number may exceed the existing GPUs.")),
    Command.make(
      "list",
      { json },
      Effect.fn(function* ({ json }) {
        const reservations = yield* Reservations
        yield* printRows(
          json,
          (yield* reservations.list).map((row) => ({
            org: row.organization,
            host_class: row.hostClass,
            gpus: row.gpus,
            updated_at: new Date(row.updatedAt).toISOString()
          }))
        )
      })
    ).pipe(Command.withDescription("Lists the reservations of all organizations.")),
    Command.make(
      "withdraw",
      { org, hostClass, yes, json },
      Effect.fn(function* ({ hostClass, json, org, yes }) {
        const reservations = yield* Reservations
        const { id } = yield* organization(org)
        yield* confirm(yes, `GPUs of ${hostClass} that ${org} does not currently use will be available to all organizations.`)
        const before = yield* reservations.withdraw(id, hostClass)
        if (Option.isNone(before)) return yield* new CommandError({ message: `${org} has no reservation of ${hostClass}.` })
        yield* printRecord(json, { org, host_class: hostClass, gpus: 0, before: before.value })
      })
    ).pipe(Command.withDescription("Ends a reservation. Running engines continue."))
  ])
)
