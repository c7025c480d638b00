-- Nothing reads these.
ALTER TABLE questions DROP COLUMN first_person;
ALTER TABLE questions DROP COLUMN accepted_answer;
ALTER TABLE questions DROP COLUMN accepted_person;
ALTER TABLE feedback DROP COLUMN token;
