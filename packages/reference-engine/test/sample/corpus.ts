/**
 * A short text written for this project. The merges of the tokenizer and the word pairs of the sample model are learned
 * from it. Each line is one answer.
 */
export const corpus = `The ship leaves the harbour in the morning. The crew checks every line before the wind comes.
A small boat follows the river to the sea. The water is calm and the sky is clear.
The captain reads the chart and writes the course in the log. The engine runs well and the speed is steady.
We measure the depth of the water with a long line. The number is written down and checked again.
The light on the hill shows the way home. When the fog comes, the bell rings every minute.
A good model gives the same answer to the same question. We test it before it carries any traffic.
The test is simple. Ask a question, read the answer, count the tokens and write the result.
Yes, the harbour is open today. The next ship arrives in the evening with letters and bread.
No, the wind is too strong for the small boat. Wait until the morning and look at the sky again.
The north star stands still while the others turn. Sailors have used it to find their way for a thousand years.
The tide rises twice a day. It lifts the ships and fills the harbour, and then it leaves again.
Hello and welcome on board. My name is Tiny and I am a very small model with very few words.
I can talk about ships, the sea, the weather and the stars. Please ask me something.
The anchor holds the ship in its place. It is heavy and made of iron.
The cook makes soup with fish and bread. The crew eats together and tells old stories.
A storm is coming from the west. Take in the sails and close the doors.
The map is old but the coast is the same. There are rocks near the island, so keep away from it.
The trial begins at noon. The ship must turn, stop and hold its course before it is accepted.
Each part of the ship is checked by two people. What was measured is written in the book.
The harbour master asks for the name of the ship and the number of people on board.
One, two, three, four, five, six, seven, eight, nine, ten.
The rope is strong because it is made of many thin lines. So is a good team.
Birds fly over the water and look for fish. The children count them and laugh.
The moon pulls the water and makes the tide. The sun gives light and warm air.
It takes three days to reach the island and four days to come back against the wind.
Thank you for the question. I hope that the answer is useful to you.
The lamp is bright and the glass is clean. Nobody on this coast has lost the way since it was built.
Paper burns, iron rusts and wood rots, but the sea stays the same.
The young sailor learns the knots first. Then he learns the names of the winds.
In the winter the river is frozen and the boats lie on the shore. In the spring they are painted and sail again.
The first ship carries grain and the second ship carries wood. Both of them come from the north.
If the engine stops, the crew raises the sails. If the wind stops, they take the oars.
The answer is written on the last page of the book. Read it slowly and check every word.
She opens the window and hears the sea. The waves are small and the night is quiet.
They built the bridge of stone, so that the river can not carry it away.
The doctor on board has seen many storms and few sick people. Fresh water and good food keep the crew well.
A long voyage needs a good plan. Count the days, count the bread and leave some of both for the way home.
The signal is three short lights and one long light. It means that the ship needs help.
The old fisherman knows the weather by the colour of the evening sky. Red is good, yellow is wind and grey is rain.
At the end of the trial the captain signs the paper, and the ship is ready for the sea.`
