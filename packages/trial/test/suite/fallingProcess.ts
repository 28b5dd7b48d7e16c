import { existsSync, statSync, writeFileSync } from "node:fs"
import { makePinned, type Numbered, type PinnedAnswer, type PinnedQuestion } from "../../src/suite/pinnedQuestions.ts"

const pinned = makePinned()

/** Kills itself if its input names a file that does not exist, which it creates, or a folder, which always exists. */
const killedBy = (config: string): void => {
  const [, path = ""] = /^\{"killed":"(.*)"\}$/.exec(config) ?? []
  if (path === "") return
  if (existsSync(path) && statSync(path).isFile()) return
  if (!existsSync(path)) writeFileSync(path, "")
  process.kill(process.pid, "SIGKILL")
}

/**
 * Exits if it is asked to read or encode "fall", or by the signal whose name it is asked to encode or render. Reports
 * its process id as the only mark of its tokenizer.
 */
const answer = (question: PinnedQuestion): PinnedAnswer => {
  if (question._tag === "Read" && question.source.tokenizer?.config === "fall") process.exit(1)
  if (question._tag === "Read" && question.source.tokenizer !== null) killedBy(question.source.tokenizer.config)
  if (question._tag === "Encode" && question.texts.includes("fall")) process.exit(1)
  const words = question._tag === "Encode" ? question.texts : question._tag === "Render" ? [JSON.stringify(question.conversations)] : []
  const signal = (["SIGKILL", "SIGABRT"] as const).find((name) => words.some((text) => text.includes(name)))
  if (signal !== undefined) process.kill(process.pid, signal)
  const answered = pinned(question)
  return answered._tag === "Read" && answered.tokenizer !== null
    ? { ...answered, tokenizer: { ...answered.tokenizer, special: [String(process.pid)] } }
    : answered
}

process.on("message", ({ number, words }: Numbered<PinnedQuestion>) => {
  process.send?.({ number, words: answer(words) })
})
