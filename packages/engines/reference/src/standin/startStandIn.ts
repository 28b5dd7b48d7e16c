import { type CommandLine, readWords } from "../../../src/CommandLine.ts"
import { type ContextEdge, parseArguments, type ToolCallReading } from "../Arguments.ts"
import type { Speech } from "../Speech.ts"
import { startEngine } from "../startEngine.ts"
import { type Given, ownWords } from "./words.ts"

/** The engine whose place is taken. */
export interface StandIn {
  /** The words that begin its command line. */
  readonly command: ReadonlyArray<string>
  readonly program: string
  readonly commandLine: CommandLine
  /** The reference engine's arguments, by the names that they have there. */
  readonly names: Readonly<Record<string, string>>
  readonly gpus: string
  /** Switches of the reference engine that a switch there stands for. */
  readonly switches: Readonly<Record<string, string>>
  /** What it was told to do with calls of functions, of which one form is read here. */
  readonly toolCalls: (given: Given) => ToolCallReading
  /** Whether it was told to part reasoning from answers, in the one form that is read here. */
  readonly readsReasoning: (given: Given) => boolean
  /** Whether requests may give any name. */
  readonly anyModelName: boolean
  readonly edge: ContextEdge
  readonly speech: (given: Given) => Speech
}

/** Runs the reference engine in another's place: it refuses what the other would not take, and speaks as the other does. */
export const startStandIn = (
  { anyModelName, command, commandLine, edge, gpus, names, program, readsReasoning, speech, switches, toolCalls }: StandIn,
  words: ReadonlyArray<string>
) => {
  const refuse = (reason: string) => {
    process.stderr.write(`usage: ${program} [options]\n${program}: error: ${reason}\n`)
    process.exitCode = 2
  }
  if (command.some((word, index) => words[index] !== word)) return refuse(`this stand-in takes ${command.join(" ")} alone`)
  const given = readWords(commandLine, words.slice(command.length))
  if (typeof given === "string") return refuse(given)
  const own = ownWords(given, names, gpus)
  const settings = parseArguments([...own, ...Object.entries(switches).flatMap(([name, there]) => (given.has(there) ? [`--${name}`] : []))])
  if (typeof settings === "string") return refuse(settings)
  // As they are: a name may be any text.
  const [first = settings.model, ...others] = given.get("served-model-name") ?? []
  startEngine(
    {
      ...settings,
      servedModelNames: [first, ...others],
      anyModelName,
      edge,
      readsReasoning: readsReasoning(given),
      toolCalls: toolCalls(given)
    },
    speech(given)
  )
}
