#!/usr/bin/env node

import { parseArguments, usage } from "./Arguments.ts"
import { ownSpeech } from "./Speech.ts"
import { startEngine } from "./startEngine.ts"

const start = (words: ReadonlyArray<string>) => {
  if (words.includes("--help")) {
    process.stdout.write(`${usage}\n`)
    return
  }
  const settings = parseArguments(words)
  if (typeof settings === "string") {
    process.stderr.write(`main.ts: error: ${settings}\n`)
    process.exitCode = 2
    return
  }
  startEngine(settings, ownSpeech)
}

start(process.argv.slice(2))
