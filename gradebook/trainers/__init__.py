"""The probe; what released trainers compute; recorder and guard inside known ones. No
module here imports its trainer."""
