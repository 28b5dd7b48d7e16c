import { Billing, type BillingLimits } from "@seatrial/store"
import { Effect, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { printRecord } from "../print.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { jsonFlag as json, orgFlag as org, organization } from "./organization.ts"

const shown = (org: string, { gpuLimit, suspended }: BillingLimits) => ({ org, gpu_limit: gpuLimit, billing: suspended ? "suspended" : "active" })

const gpus = Flag.String("gpus").pipe(
  Flag.withDescription("GPUs that the organization's runs may hold at once, or none for no limit"),
  Flag.withSchema(Schema.String.check(Schema.isPattern(/^(none|\d{1,6})$/u, { message: "Expected a number of GPUs, 0 to 999999, or none" })))
)

export const limitsCommand = Command.make("limits").pipe(
  Command.withDescription("What an organization may use."),
  Command.withSubcommands([
    Command.make(
      "show",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRecord(json, shown(org, yield* billing.limits(id)))
      })
    ).pipe(Command.withDescription("Shows an organization's limits.")),
    Command.make(
      "set",
      { org, gpus, json },
      Effect.fn(function* ({ gpus, json, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRecord(json, shown(org, yield* billing.setGpuLimit(id, gpus === "none" ? null : Number(gpus))))
      })
    ).pipe(Command.withDescription("Sets an organization's limit of GPUs."))
  ])
)

export const billingCommand = Command.make("billing").pipe(
  Command.withDescription("Whether an organization may begin new deployments."),
  Command.withSubcommands([
    Command.make(
      "suspend",
      { org, yes, json },
      Effect.fn(function* ({ json, org, yes }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* confirm(yes, `${org} makes no new deployments until billing is resumed.`)
        yield* printRecord(json, shown(org, yield* billing.setSuspended(id, true)))
      })
    ).pipe(Command.withDescription("Suspends billing: new deployments are answered with 402 as without a first purchase; what serves goes on.")),
    Command.make(
      "resume",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRecord(json, shown(org, yield* billing.setSuspended(id, false)))
      })
    ).pipe(Command.withDescription("Resumes billing: deployments can be made again."))
  ])
)
