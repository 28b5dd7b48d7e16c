/** `version`: raised by any change of a prompt, parameter, threshold or hashed byte. `textsSince`: from which on the texts of `text_likelihood` are these. */
export const suite = { name: "seatrial-core", version: 11, textsSince: 1 } as const
