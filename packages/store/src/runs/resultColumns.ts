/** The columns of a revision with the results of its trial. A run that is tried again starts without them. */
export const resultColumns = ["checks", "likelihood", "measured", "benchmark"] as const
export type ResultColumn = (typeof resultColumns)[number]
