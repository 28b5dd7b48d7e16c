import { Action } from "./Decision.ts"

/** The actions, applied to the engine with that ordinal. */
export const onEngine = (ordinal: number, actions: ReadonlyArray<Action>): ReadonlyArray<Action> => {
  if (ordinal === 0) return actions
  return actions.map((action) => {
    switch (action._tag) {
      case "EnsurePod":
        return Action.EnsurePod({ ordinal })
      case "RemovePod":
        return Action.RemovePod({ ...action, ordinal })
      case "NoteNodeFault":
        return Action.NoteNodeFault({ ...action, ordinal })
      default:
        return action
    }
  })
}
