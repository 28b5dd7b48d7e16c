import { Effect } from "effect"
import { NotApplicable, type TrialCheck, unexpected } from "./Check.ts"
import { repeatCode } from "./codes.ts"
import { claims, greedily, messageSaid, messageStreamText, messageText, post } from "./pathBodies.ts"
import { mayThink, roomAfterThought, type SuiteSubject, thinksAnyway, thoughtSeconds, together, withoutThinking } from "./SuiteSubject.ts"

const path = "/v1/messages"
const tokens = 24
/** For models that do not write the code. */
const questions = ["Name three colours.", "Count from 1 to 20."]

/** Four characters from the middle of the answer that do not occur earlier; null if there are none. */
const stopIn = (text: string, thought: string): string | null => {
  const stop = text.trim().slice(1, 5)
  return stop.trim().length === 4 && !thought.includes(stop) ? stop : null
}

/** Stop sequences on `/v1/messages`, which has its own field for them. */
export const messagesStop: TrialCheck = {
  name: "messages_stop",
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: "On /v1/messages an answer ends before a stop sequence, whole and streamed",
  limitSeconds: (subject) => 20 + (thinksAnyway(subject) ? thoughtSeconds(4) : 0),
  skipped: (subject: SuiteSubject) =>
    claims(path)(subject) ?? (subject.capabilities.supported_parameters_by_endpoint[path]?.includes("stop_sequences") === true ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const toggled = mayThink(subject) && !thinksAnyway(subject)
    for (const question of [repeatCode(subject.seed, "messages_stop"), ...questions]) {
      const body = {
        ...greedily,
        messages: [{ role: "user", content: question }],
        max_tokens: mayThink(subject) ? roomAfterThought(subject, tokens) : tokens,
        ...(toggled ? { thinking: { type: "disabled" }, ...withoutThinking(subject) } : {})
      }
      const answer = yield* post(subject, path, body)
      const text = messageText(answer)
      const stop = stopIn(text, messageSaid(answer).slice(0, -text.length))
      if (stop === null) continue
      // Together with a second stop sequence that occurs in no answer.
      const stopped = { ...body, stop_sequences: ["~|~|~", stop] }
      const [complete, streamed] = yield* Effect.all(
        [post(subject, path, stopped), post(subject, path, { ...stopped, stream: true })],
        together(mayThink(subject))
      )
      if (messageText(complete).includes(stop)) return yield* unexpected("whole: an answer goes on past a stop sequence")
      if (messageStreamText(streamed).includes(stop)) return yield* unexpected("streamed: an answer goes on past a stop sequence")
      return "2 answers cut"
    }
    return yield* new NotApplicable({ reason: "no answer long enough to be cut", unseen: true })
  })
}
