import { confineProcess } from "./confineProcess.ts"
import { makePinned, type Numbered, type PinnedAnswer, type PinnedQuestion } from "./pinnedQuestions.ts"

confineProcess()
const answer = makePinned()
process.on("message", ({ number, words }: Numbered<PinnedQuestion>) => {
  const answered: Numbered<PinnedAnswer> = { number, words: answer(words) }
  process.send?.(answered)
})
// The parent ends this process, even if a terminal interrupts both.
process.on("SIGINT", () => {})
