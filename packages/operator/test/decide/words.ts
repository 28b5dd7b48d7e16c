import type { Decision } from "../../src/decide/Decision.ts"

/** A decision in one line: its actions in order, the background work, and the time of the next pass. */
export const words = (decision: Decision): string =>
  [
    ...decision.actions.map((action) => {
      switch (action._tag) {
        case "Enter":
          return `enter ${action.to}${action.failure === null ? "" : ` ${action.failure.code}`}${action.replaces ? " replacing" : ""}`
        case "KeepLog":
          return "keep log"
        case "RemovePod":
          return `remove pod${action.uid === null ? "" : ` ${action.uid}`}${action.force ? " by force" : ""}`
        case "Publish":
          return `publish ${action.endpoints.map((endpoint) => endpoint.url).join(" ") || "nothing"}`
        default:
          return action._tag
      }
    }),
    ...(decision.work === null ? [] : [`work ${decision.work}`]),
    ...(decision.requeueAt === null ? [] : [`again ${decision.requeueAt}`])
  ].join(", ")
