import { parentPort } from "node:worker_threads"
import { answerLarge, type LargeBodyQuestion } from "../src/vocabulary/largeBody.ts"

// The thread of large bodies, which one of them ends.
parentPort?.on("message", (question: LargeBodyQuestion) => {
  if (Buffer.from(question.bytes).includes("fall")) throw new Error("it fell")
  parentPort?.postMessage(answerLarge(question))
})
