import { confineProcess } from "./confineProcess.ts"
import { makePinned, type Numbered, type PinnedAnswer, type PinnedQuestion } from "./pinnedQuestions.ts"

confineProcess()
const answer = makePinned()
process.on("message", ({ number, words }: Numbered<PinnedQuestion>) => {
  const answered: Numbered<PinnedAnswer> = { number, words: answer(words) }
  process.send?.(answered)
})
// Who started it ends it, also where a terminal interrupts both.
process.on("SIGINT", () => {})
