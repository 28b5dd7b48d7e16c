import { Effect, Schema } from "effect"
import { parseAllDocuments } from "yaml"
import { chart, type NodeClusterShape } from "./NodeCluster.ts"

const rendering = ["--show-only", "templates/networkpolicy.yaml", "--set", "postgres.embedded.enabled=false"]
const Hook = Schema.Struct({ metadata: Schema.Struct({ annotations: Schema.Struct({ "helm.sh/hook": Schema.String }) }) })

/** Applies the network policy that exists only while the migration Job runs, until the scope closes. A release with the embedded Postgres has none. */
export const policyHooks = ({ apply, helm, kubectl }: NodeClusterShape) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const documents = parseAllDocuments(yield* helm("template", "seatrial", chart, ...rendering))
      const policies = documents.map((document): unknown => document.toJS()).filter(Schema.is(Hook))
      if (policies.length === 0) return yield* Effect.die(new Error("No hook of the release has a network policy."))
      yield* apply(...policies)
    }),
    () => Effect.ignore(kubectl(["delete", "networkpolicy/seatrial-migrate"]))
  )
