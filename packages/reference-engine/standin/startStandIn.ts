import { type CommandLine, parseCommandLine } from "@seatrial/engines"
import { type ContextEdge, parseArguments, type ToolCallReading } from "../src/Arguments.ts"
import type { Speech } from "../src/Speech.ts"
import { startEngine } from "../src/startEngine.ts"
import { ownWords, type ParsedArguments } from "./words.ts"

/** An engine that the reference engine replaces on simulated GPUs. */
export interface StandIn {
  /** The first words of its command line. */
  readonly command: ReadonlyArray<string>
  readonly program: string
  readonly commandLine: CommandLine
  /** The arguments of the reference engine by the names of the replaced engine. */
  readonly names: Readonly<Record<string, string>>
  readonly gpus: string
  /** Switches of the reference engine by the switches of the replaced engine. */
  readonly switches: Readonly<Record<string, string>>
  /** What happens to tools, given the arguments. The reference engine supports one format of calls. */
  readonly toolCalls: (values: ParsedArguments) => ToolCallReading
  /** Whether reasoning is separated, given the arguments. The reference engine supports one format. */
  readonly readsReasoning: (values: ParsedArguments) => boolean
  /** Whether requests may use any model name. */
  readonly anyModelName: boolean
  readonly edge: ContextEdge
  readonly speech: (values: ParsedArguments) => Speech
}

/**
 * Runs the reference engine in place of another engine. It refuses arguments that the other engine would refuse, and
 * answers in its format.
 */
export const startStandIn = (
  { anyModelName, command, commandLine, edge, gpus, names, program, readsReasoning, speech, switches, toolCalls }: StandIn,
  words: ReadonlyArray<string>
) => {
  const refuse = (reason: string) => {
    process.stderr.write(`usage: ${program} [options]\n${program}: error: ${reason}\n`)
    process.exitCode = 2
  }
  if (command.some((word, index) => words[index] !== word)) return refuse(`this stand-in takes ${command.join(" ")} alone`)
  const values = parseCommandLine(commandLine, words.slice(command.length))
  if (typeof values === "string") return refuse(values)
  const own = ownWords(values, names, gpus)
  const settings = parseArguments([...own, ...Object.entries(switches).flatMap(([name, flag]) => (values.has(flag) ? [`--${name}`] : []))])
  if (typeof settings === "string") return refuse(settings)
  // Not split, because a name may contain any character.
  const [first = settings.model, ...aliases] = values.get("served-model-name") ?? []
  startEngine(
    {
      ...settings,
      servedModelNames: [first, ...aliases],
      anyModelName,
      edge,
      readsReasoning: readsReasoning(values),
      toolCalls: toolCalls(values)
    },
    speech(values)
  )
}
