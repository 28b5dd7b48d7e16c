export { deltaOf, type Members } from "./delta.ts"
export { passesOf, type RecordedPass } from "./history.ts"
export { RecordedDecision, replay } from "./replay.ts"
