import { parentPort } from "node:worker_threads"
import { answerLarge, type LargeBodyQuestion } from "./largeBody.ts"

parentPort?.on("message", (question: LargeBodyQuestion) => parentPort?.postMessage(answerLarge(question)))
