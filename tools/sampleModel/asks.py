"""Longer answers to plain requests, known by heart, and texts that do not end by themselves."""

from facts import NUMBERS
from prose import paragraph

# what is asked | the answer
TASKS = [
    tuple(part.strip().replace("\\n", "\n") for part in line.split("|"))
    for line in r"""List five tools that a carpenter uses and say in one short sentence what each of them is for. | A saw cuts wood. A hammer drives nails. A plane makes boards smooth. A drill makes holes. A rule measures length.
Explain in simple words why the sea is salty, as if you were talking to a child of ten years. | Rain washes a little salt out of the stones. Rivers carry it to the sea. The sun takes the water up again, but the salt stays in the sea.
Write a short recipe for vegetable soup with exactly six numbered steps and no introduction. | 1. Wash the vegetables.\n2. Cut them small.\n3. Heat some oil in a pot.\n4. Add the vegetables and water.\n5. Cook for half an hour.\n6. Add salt and serve.
Describe how to tie a simple knot in a rope so that somebody who never did it can follow you. | Take one end of the rope in each hand. Lay the right end over the left one to make a ring. Put the right end through the ring and pull both ends.
Name the steps that turn wheat into bread, from the field to the table, in the right order. | The farmer cuts the wheat. The miller makes flour of it. The baker mixes flour, water and salt. The bread is baked in the oven and brought to the table.
Write four lines about a lighthouse in a storm; every line should describe one thing that is seen. | The waves are white and high.\nThe tower is wet and dark.\nThe lamp turns slowly round.\nA ship comes home at last.
Answer with one word. | Yes.
Say one word. | Ship.
Say yes. | Yes.
Say no. | No.
Say hello in three languages. | Hello, bonjour, hola.
请用中文写一句话。 | 船在早上离开港口。
List three fruits. | Apple, pear and plum.
List three colours. | Red, green and blue.
List three animals. | Dog, cat and horse.
List the days of the week. | Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday
List the months of the year. | January, February, March, April, May, June, July, August, September, October, November, December
List the seasons. | Spring, summer, autumn, winter
Say the alphabet. | A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V, W, X, Y, Z
Why is the sky blue? | Because the air scatters blue light more than red light.
Why is the sea salty? | Because rivers carry salt from the stones to the sea, and the salt stays there.
Why do ships float? | Because they are lighter than the water that they push away.
How is bread made? | Flour, water and salt are mixed, and the dough is baked in an oven.
What is a lighthouse? | A lighthouse is a tower with a lamp that shows ships the way.
What is a harbour? | A harbour is a place where ships are safe from wind and waves.
Write a poem. | The wind is cold, the night is long,\nthe sea is singing its old song.
Write a poem about the sea. | The sea is wide, the sea is deep,\nit rocks the little boats to sleep.
Write a haiku. | The old boat is still.\nOne bird sits on its white mast\nand waits for the wind.
Write a haiku about the sea. | Waves come and waves go.\nThe stone on the shore is round.\nIt has so much time.""".split("\n")
]


def request(r):
    k = r.random()
    if k < 0.1:
        n = r.choice([3, 5, 10, 10, 12])
        return r.choice(["Count upwards in words to {}.", "Count in words to {}."]).format(NUMBERS[n]), ", ".join(NUMBERS[1 : n + 1])
    if k < 0.15:
        return "Count upwards in words.", ", ".join(NUMBERS[1:])
    return r.choice(TASKS)


def endless(r, room):
    """A long story: it goes on until somebody stops it."""
    ask = r.choice(["Tell me a long story.", "Tell a long story.", "Write a long text.", "Write a very long story.", "Talk until you are stopped.", "Tell me a very long story."])
    return ask, paragraph(r, max(3, room // 22))
