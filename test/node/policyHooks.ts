import { Effect } from "effect"
import { parseAllDocuments } from "yaml"
import type { NodeClusterShape } from "./NodeCluster.ts"

const isPolicy = (object: unknown) => typeof object === "object" && object !== null && "kind" in object && object.kind === "NetworkPolicy"

/** Applies the network policies that exist only while a hook of the release runs, until the scope closes. */
export const policyHooks = ({ apply, helm, kubectl }: NodeClusterShape) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const documents = parseAllDocuments(yield* helm("get", "hooks", "seatrial"))
      const policies = documents.map((document): unknown => document.toJS()).filter(isPolicy)
      if (policies.length === 0) return yield* Effect.die(new Error("No hook of the release has a network policy."))
      yield* apply(...policies)
    }),
    () => Effect.ignore(kubectl(["delete", "networkpolicy/seatrial-migrate"]))
  )
