import { Command } from "effect/cli"

/** Flags that need the description of every command. */
const needsAllCommands = /^--(?:completions|wizard)/

/**
 * A command whose modules are loaded only if the arguments name it. Otherwise the command has only a name and a
 * description.
 */
export const lazily = async <const Name extends string, E, R>(
  args: ReadonlyArray<string>,
  name: Name,
  what: string,
  load: () => Promise<Command.Command<Name, never, object, E, R>>
): Promise<Command.Command<Name, never, object, E, R>> =>
  args.some((argument) => argument === name || needsAllCommands.test(argument)) ? await load() : Command.make(name).pipe(Command.withDescription(what))
